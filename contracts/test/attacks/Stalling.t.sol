// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../../src/interfaces/IDisputeGame.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {GameId} from "../../src/types/Ids.sol";
import {Node} from "../../src/types/Openings.sol";
import {LeafTree} from "../dispute/LeafTree.sol";
import {Play} from "../dispute/Play.sol";

/// @title A challenger that keeps one game going as long as its clock and its demands allow.
contract StallingTest is Play {
    uint256 private constant DEMANDS = 95;

    GameId private id;
    uint256 private start;

    function setUp() public override {
        super.setUp();
        _start();
        id = _blind();
        start = vm.getBlockTimestamp();
    }

    /// @dev The challenger is slow wherever it can be, and moves in the last second at the end: its own time
    /// is then over, however much the solver used.
    function test_demand_untilTheLastSecond_endsInTime_succeeds() public {
        for (uint256 k; k < TIME / 10; ++k) {
            _askAgain(10, 7);
        }
        assertEq(vm.getBlockTimestamp(), start + TIME + TIME / 10 * 7, "each side's own seconds");
        uint64 deadline = game.gameOf(id).deadline;
        assertEq(deadline, vm.getBlockTimestamp(), "nothing is left");
        _askAgain(0, 7);
        deadline += 7;
        vm.warp(deadline + 1);
        Node[] memory nodes = _node(LeafTree.leaves(checkpoints), 0, 4);
        bytes32 head = _head(id);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooLate.selector, deadline, deadline + 1));
        vm.prank(challenger);
        game.demand(id, head, IDisputeGame.Tree.Segment, _none(), steps[STEP - 1], steps[STEP], nodes);
        vm.prank(anyone);
        game.timeOut(id);
        _assertVerdict(id, IDisputeGame.Verdict.ChallengerSilent);
    }

    /// @dev Both sides use their whole clocks: the game ends within twice the clock, and the challenger, to
    /// move last, loses.
    function test_demand_bothSidesSlow_endsInTwiceTheClock_succeeds() public {
        for (uint256 k; k < TIME / 10; ++k) {
            _askAgain(10, 10);
        }
        assertEq(vm.getBlockTimestamp(), start + 2 * TIME);
        IDisputeGame.Game memory g = game.gameOf(id);
        assertEq(g.solverSpent, TIME);
        assertEq(g.challengerSpent, TIME);
        _askAgain(0, 0);
        vm.warp(start + 2 * TIME + 1);
        game.timeOut(id);
        _assertVerdict(id, IDisputeGame.Verdict.ChallengerSilent);
    }

    /// @dev A quick challenger can make 95 of its 96 demands and still continue.
    function test_demand_allOfThem_succeeds() public {
        for (uint256 k; k < DEMANDS; ++k) {
            _askAgain(k % 2, k % 2);
        }
        assertEq(game.gameOf(id).challengerSpent, DEMANDS / 2);
        _selectSegment(id);
        _expandSteps();
        assertEq(game.gameOf(id).deadline, vm.getBlockTimestamp() + TIME - DEMANDS / 2);
    }

    function _askAgain(uint256 thinks, uint256 answers) private {
        vm.warp(vm.getBlockTimestamp() + thinks);
        Node[] memory nodes = _node(LeafTree.leaves(checkpoints), 0, 4);
        _demand(id, IDisputeGame.Tree.Segment, nodes);
        vm.warp(vm.getBlockTimestamp() + answers);
        game.revealNode(id, 0, 0, _named(nodes), LeafTree.leaves(checkpoints));
    }
}
