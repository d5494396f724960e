// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../../src/interfaces/IDisputeGame.sol";
import {GameId} from "../../src/types/Ids.sol";
import {Opcode, TypeCode} from "../../src/types/Instruction.sol";
import {ChunkOpening, Leaf, Node} from "../../src/types/Openings.sol";
import {Snapshot} from "../harness/Snapshot.sol";
import {Judging} from "./Judging.sol";
import {LeafTree} from "./LeafTree.sol";
import {StepProgram} from "./StepProgram.sol";

/// @title Gas of moves, each as a separate transaction, including cold storage, calldata and the 21,000.
/// @notice Targets are in dispute.md section 9. Paths are short here; 16 more hashes in a path cost about
/// 20,000.
contract GameGasTest is Judging, Snapshot {
    /// @dev An isolated transaction has no base fee, so the deposits of demands here come from the data fee.
    function _dataFee() internal pure override returns (uint64) {
        return 1;
    }

    /// @dev One ulp of error in the callee's sum: a commitment, a challenge, a step tree, a step, two traces
    /// with a call between them, one judgment.
    /// forge-config: default.isolate = true
    function test_gas_servedDispute_belowTargets_succeeds() public {
        calleeValues[2][4 * 299] = 0x01;
        _start();
        uint256 total;
        _commit(task, SEGMENT, challenger);
        total += _matches("commit", 150_000);
        GameId id = _challenge();
        total += _matches("challenge", 200_000);
        _expandSteps();
        total += _matches("expand steps", 150_000);
        _selectStep(id);
        total += _matches("select step", 150_000);
        _expandTop();
        total += _matches("expand trace", 150_000);
        _selectCall(id);
        total += _matches("select call", 150_000);
        _expandCallee();
        total += _matches("expand callee", 150_000);
        _judge(id, _calleeAdd(299));
        total += _matches("judge", 300_000);
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
        GameId id = _blind();
        _matches("challenge blind", 200_000);
        bytes32[] memory hashes = LeafTree.leaves(checkpoints);
        Node[] memory nodes = _node(hashes, 0, 16);
        _demand(id, IDisputeGame.Tree.Segment, nodes);
        _matches("demand", 150_000);
        game.revealNode(id, 0, 0, _named(nodes), hashes);
        _matches("reveal of 16 children", 110_000);
        nodes = _node(hashes, 7, 1);
        _demand(id, IDisputeGame.Tree.Segment, nodes);
        _matches("demand again", 150_000);
        game.revealLeaf(id, 0, 0, _named(nodes), abi.encodePacked(checkpoints[7]));
        _matches("reveal of a leaf", 80_000);
    }

    /// @dev A judgment of `dot` over two full chunks of random numbers, with its result in a third chunk. i32
    /// [16, 256] times i32 [8, 256] gives i64 [16, 8].
    /// forge-config: default.isolate = true
    function test_gas_judgeDot_belowTarget_succeeds() public {
        bytes memory x = abi.encodePacked(TypeCode.I32, uint8(2), uint32(16), uint32(256));
        bytes memory y = abi.encodePacked(TypeCode.I32, uint8(2), uint32(8), uint32(256));
        bytes memory z = abi.encodePacked(TypeCode.I64, uint8(2), uint32(16), uint32(8));
        bytes[] memory list = new bytes[](3);
        list[0] = abi.encodePacked(Opcode.CONSTANT, uint32(0), uint8(0), uint8(1), x, uint32(0));
        list[1] = abi.encodePacked(Opcode.CONSTANT, uint32(1), uint8(0), uint8(1), y, uint32(0));
        list[2] = abi.encodePacked(Opcode.DOT, uint32(2), uint8(2), uint32(0), x, uint32(1), y, uint8(1), z);
        top = StepProgram.program(list, 3);
        topValues = [_random(16 * 1024), _random(8 * 1024), _random(1024)];
        _start();
        GameId id = _inTop();
        ElementJudgment memory j;
        j.instruction = _open(top, 2);
        j.element = 127;
        j.operands = new Leaf[](2);
        (j.operands[0], j.operands[1]) = (_beside(topRoots, 2, 0), _beside(topRoots, 2, 1));
        j.chunks = new ChunkOpening[](2);
        (j.chunks[0], j.chunks[1]) = (_chunk(0, topValues[0], 15), _chunk(1, topValues[1], 7));
        j.value = _leaf(topRoots, 2);
        j.claimed = _chunk(0, topValues[2], 0);
        _judge(id, j);
        _matches("judge dot", 300_000);
        _assertVerdict(id, IDisputeGame.Verdict.SolverFalse);
    }

    function _random(uint256 length) private pure returns (bytes memory data) {
        data = new bytes(length);
        for (uint256 k; k < length; k += 32) {
            bytes32 word = keccak256(abi.encode(length, k));
            assembly ("memory-safe") {
                mstore(add(add(data, 0x20), k), word)
            }
        }
    }
}
