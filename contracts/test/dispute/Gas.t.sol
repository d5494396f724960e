// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../../src/interfaces/IDisputeGame.sol";
import {Node} from "../../src/types/Openings.sol";
import {Judging} from "./Judging.sol";
import {LeafTree} from "./LeafTree.sol";

/// @title What each move costs, as a transaction of its own: cold storage, calldata and the 21,000 included.
/// @notice Targets of dispute.md section 11. Paths are short here; a path of 16 hashes more costs about 20,000.
contract GameGasTest is Judging {
    /// @dev One ulp in the callee's sum: challenge, two expansions on the way down, one call, one judgment.
    /// forge-config: default.isolate = true
    function test_gas_servedDispute_belowTargets_succeeds() public {
        calleeValues[2][4 * 299] = 0x01;
        _start();
        uint256 total;
        _commit(task, SEGMENT, challenger);
        total += _below("commit", 150_000);
        uint256 id = _challenge();
        total += _below("challenge", 260_000);
        _expandSteps();
        total += _below("expand steps", 150_000);
        _selectStep(id);
        total += _below("select step", 150_000);
        _expandTop();
        total += _below("expand trace", 150_000);
        _selectCall(id);
        total += _below("select call", 250_000);
        _expandCallee();
        total += _below("expand callee", 150_000);
        _judge(id, _calleeAdd(299));
        total += _below("judge", 350_000);
        emit log_named_uint("whole dispute", total);
        assertLt(total, 3_000_000);
    }

    /// forge-config: default.isolate = true
    function test_gas_reveal_belowTarget_succeeds() public {
        checkpoints = new bytes32[](16);
        for (uint256 k; k < 16; ++k) {
            checkpoints[k] = keccak256(abi.encode(k));
        }
        steps = checkpoints;
        task = _submitted(top.id, keccak256("constants"), checkpoints);
        uint256 id = _blind();
        _below("challenge blind", 280_000);
        bytes32[] memory hashes = LeafTree.leaves(checkpoints);
        Node[] memory nodes = _node(hashes, 0, 16);
        _demand(id, IDisputeGame.Tree.Segment, nodes);
        _below("demand", 150_000);
        game.revealNode(id, 0, 0, _named(nodes), hashes);
        _below("reveal of 16 children", 80_000);
        nodes = _node(hashes, 7, 1);
        _demand(id, IDisputeGame.Tree.Segment, nodes);
        _below("demand again", 150_000);
        game.revealLeaf(id, 0, 0, _named(nodes), abi.encodePacked(checkpoints[7]));
        _below("reveal of a leaf", 80_000);
    }

    /// @dev The last transaction's gas.
    function _below(string memory move, uint256 limit) private returns (uint256 used) {
        used = vm.lastCallGas().gasTotalUsed;
        emit log_named_uint(move, used);
        assertLt(used, limit, move);
    }
}
