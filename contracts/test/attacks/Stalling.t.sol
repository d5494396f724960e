// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../../src/interfaces/IDisputeGame.sol";
import {Errors} from "../../src/libraries/Errors.sol";
import {GameId} from "../../src/types/Ids.sol";
import {Node} from "../../src/types/Openings.sol";
import {LeafTree} from "../dispute/LeafTree.sol";
import {Play} from "../dispute/Play.sol";

/// @title A challenger that keeps one game going for as long as its moves allow, each in the last second.
contract StallingTest is Play {
    /// @dev Clocks of one move that a challenger has in a whole game.
    uint256 private constant CLOCKS = 32;
    uint256 private constant ANSWER = 7;

    GameId private id;

    function setUp() public override {
        super.setUp();
        _start();
        id = _blind();
    }

    function test_demand_everyTimeInTheLastSecond_endsInTime_succeeds() public {
        uint256 start = vm.getBlockTimestamp();
        for (uint256 k; k < CLOCKS; ++k) {
            vm.warp(game.gameOf(id).deadline);
            _askAgain();
        }
        // The solver's seconds were not the challenger's.
        assertEq(vm.getBlockTimestamp(), start + CLOCKS * (CHALLENGER_CLOCK + ANSWER));
        uint64 deadline = game.gameOf(id).deadline;
        assertEq(deadline, vm.getBlockTimestamp());
        vm.warp(deadline + 1);
        Node[] memory nodes = _node(LeafTree.leaves(checkpoints), 0, 4);
        bytes32 head = _head(id);
        vm.expectRevert(abi.encodeWithSelector(Errors.TooLate.selector, deadline, deadline + 1));
        vm.prank(challenger);
        game.demand(id, head, IDisputeGame.Tree.Segment, _none(), steps[STEP - 1], steps[STEP], nodes);
        vm.prank(anyone);
        game.timeOut(id);
        _assertVerdict(id, IDisputeGame.Verdict.ChallengerSilent);
    }

    /// @dev Who answers within a third of its clock can ask as often as there are demands, and go on.
    function test_demand_allOfThemInAThirdOfTheClock_succeeds() public {
        for (uint256 k; k < 95; ++k) {
            vm.warp(vm.getBlockTimestamp() + CHALLENGER_CLOCK / 3);
            _askAgain();
        }
        assertEq(game.gameOf(id).deadline, vm.getBlockTimestamp() + CHALLENGER_CLOCK / 3);
        _selectSegment(id);
        _expandSteps();
        assertEq(game.gameOf(id).deadline, vm.getBlockTimestamp() + CHALLENGER_CLOCK / 3);
    }

    function _askAgain() private {
        Node[] memory nodes = _node(LeafTree.leaves(checkpoints), 0, 4);
        _demand(id, IDisputeGame.Tree.Segment, nodes);
        vm.warp(vm.getBlockTimestamp() + ANSWER);
        game.revealNode(id, 0, 0, _named(nodes), LeafTree.leaves(checkpoints));
    }
}
