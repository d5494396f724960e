// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../../src/interfaces/IDisputeGame.sol";
import {GameId} from "../../src/types/Ids.sol";
import {Node} from "../../src/types/Openings.sol";
import {LeafTree} from "../dispute/LeafTree.sol";
import {Play} from "../dispute/Play.sol";

/// @title Demands made only to cost the other side: 96 nodes demanded of an honest solver cost the challenger
/// at least twice what the answers cost.
/// @notice Each move is a separate transaction. Without deposits, demanding 16 leaves took 255k gas and
/// answering them 1.54M.
contract DemandGriefingTest is Play {
    uint256 private constant DEMANDS = 6;
    uint256 private constant BASE_FEE = 3 gwei;

    /// @dev An isolated transaction has no base fee, so the deposits here come from the data fee;
    /// `depositFor` tells the base fee's share.
    function _dataFee() internal pure override returns (uint64) {
        return 1;
    }

    /// forge-config: default.isolate = true
    function test_demand_ninetySixNodes_costTheAskerTwice_succeeds() public {
        _start();
        GameId id = _challenge();
        _expandSteps();
        Node[] memory nodes = new Node[](16);
        for (uint256 k; k < 16; ++k) {
            nodes[k] = _node(LeafTree.leaves(steps), k % 5, 1)[0];
        }
        uint256 answers;
        for (uint256 k; k < DEMANDS; ++k) {
            _demand(id, IDisputeGame.Tree.Step, nodes);
            for (uint8 index; index < 16; ++index) {
                bytes memory data = abi.encodePacked(steps[index % 5]);
                vm.prank(solver);
                game.revealLeaf(id, index, 0, _named(nodes), data);
                answers += vm.lastCallGas().gasTotalUsed;
            }
        }
        emit log_named_uint("gas of 96 answers", answers);
        assertEq(game.creditOf(solver), 16 * DEMANDS * game.depositFor(16, 32, 0));
        assertGe(16 * DEMANDS * game.depositFor(16, 32, BASE_FEE), 2 * answers * BASE_FEE);
    }
}
