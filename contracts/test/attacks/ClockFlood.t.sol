// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../../src/interfaces/IDisputeGame.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {GameId, SegmentIndex, TaskId} from "../../src/types/Ids.sol";
import {Leaf} from "../../src/types/Openings.sol";
import {Deployed} from "../dispute/Deployed.sol";
import {LeafTree} from "../dispute/LeafTree.sol";

/// @title Many games at once against one honest solver: sixteen games of a task are played, and no clock runs
/// in the others.
contract ManySegmentsTest is Deployed {
    uint32 private constant SEGMENTS = 24;
    uint32 private constant AT_ONCE = 16;
    uint64 private constant NEVER = type(uint64).max;

    TaskId private task;
    bytes32[] private checkpoints;
    /// @dev Entry i is the game on segment i + 1.
    GameId[] private ids;

    /// @dev Opens a game on each of the 24 segments. Bonds are returned if the solver is late, so their sum
    /// is not the attacker's loss; the last bond is 2^8 single bonds.
    function setUp() public override {
        super.setUp();
        for (uint256 k; k <= SEGMENTS; ++k) {
            checkpoints.push(keccak256(abi.encode("r", k)));
        }
        task = _submitted(keccak256("program"), keccak256("constants"), checkpoints);
        for (uint32 i; i < SEGMENTS; ++i) {
            bytes32 salt = _commit(task, SegmentIndex.wrap(i + 1), challenger);
            (Leaf memory first, Leaf memory last) = (_leaf(checkpoints, i), _leaf(checkpoints, i + 1));
            vm.prank(challenger);
            ids.push(game.challenge(task, SegmentIndex.wrap(i + 1), salt, first, last));
        }
    }

    function test_challenge_manySegmentsAtOnce_sixteenArePlayed_succeeds() public {
        vm.warp(vm.getBlockTimestamp() + TIME);
        for (uint32 i; i < SEGMENTS; ++i) {
            assertEq(game.gameOf(ids[i]).deadline, i < AT_ONCE ? vm.getBlockTimestamp() : NEVER);
        }
        // In time for all games that are played: the waiting games put no pressure on the solver.
        for (uint32 i; i < AT_ONCE; ++i) {
            _expand(i);
        }
        vm.warp(vm.getBlockTimestamp() + 3650 days);
        assertEq(game.gameOf(ids[AT_ONCE]).deadline, NEVER);
    }

    /// @dev The game that waited longest is next, and both its clocks are full, even if the claim was posted
    /// long before.
    function test_timeOut_startsTheNextGame_succeeds() public {
        _expand(1);
        _expand(3);
        _expand(AT_ONCE);
        vm.warp(vm.getBlockTimestamp() + TIME + 1);
        uint256 start = vm.getBlockTimestamp();
        game.timeOut(ids[3]);
        assertEq(game.gameOf(ids[AT_ONCE]).deadline, start + TIME, "the challenger's");
        assertEq(game.gameOf(ids[AT_ONCE]).solverSpent, 0);
        assertEq(game.gameOf(ids[AT_ONCE + 1]).deadline, NEVER);
        vm.warp(start + 5);
        game.timeOut(ids[1]);
        assertEq(game.gameOf(ids[AT_ONCE + 1]).deadline, start + 5 + TIME, "the solver's");
        assertEq(game.gameOf(ids[AT_ONCE + 2]).deadline, NEVER);
    }

    /// @dev A game that is opened after all earlier ones were dismissed is played at once.
    function test_challenge_afterDismissals_succeeds() public {
        for (uint32 i; i < SEGMENTS; ++i) {
            _expand(i);
        }
        for (uint32 i; i < SEGMENTS; ++i) {
            if (i % AT_ONCE == 0) vm.warp(vm.getBlockTimestamp() + TIME + 1);
            game.timeOut(ids[i]);
        }
        bytes32 salt = _commit(task, UNKNOWN, second);
        vm.prank(second);
        GameId id = game.challengeBlind(task, salt);
        assertEq(game.gameOf(id).deadline, vm.getBlockTimestamp() + TIME);
    }

    function test_timeOut_gameThatWaits_reverts() public {
        vm.warp(vm.getBlockTimestamp() + 10 * TIME);
        vm.expectRevert(abi.encodeWithSelector(Refusals.GameWaits.selector, ids[AT_ONCE]));
        game.timeOut(ids[AT_ONCE]);
    }

    function test_selectStep_gameThatWaits_reverts() public {
        _expand(AT_ONCE);
        bytes32 head = _head(ids[AT_ONCE]);
        Leaf memory any = Leaf(0, new bytes32[](0));
        vm.prank(challenger);
        vm.expectRevert(abi.encodeWithSelector(Refusals.GameWaits.selector, ids[AT_ONCE]));
        game.selectStep(ids[AT_ONCE], head, 1, any, any);
    }

    function test_closeMoot_gameThatWaits_succeeds() public {
        vm.warp(vm.getBlockTimestamp() + TIME + 1);
        game.timeOut(ids[0]);
        uint256 free = _free(challenger);
        game.closeMoot(ids[SEGMENTS - 1]);
        assertEq(_free(challenger), free + (uint256(BOND) << (SEGMENTS - AT_ONCE)));
        assertEq(uint256(game.gameOf(ids[SEGMENTS - 1]).verdict), uint256(IDisputeGame.Verdict.Moot));
    }

    /// @dev Posts the step tree of segment i + 1.
    function _expand(uint32 i) private {
        bytes32[] memory steps = new bytes32[](STEPS + 1);
        (steps[0], steps[STEPS]) = (checkpoints[i], checkpoints[i + 1]);
        (Leaf memory first, Leaf memory last) = (_leaf(steps, 0), _leaf(steps, STEPS));
        bytes32 root = LeafTree.root(LeafTree.leaves(steps));
        vm.prank(solver);
        game.expandSteps(task, SegmentIndex.wrap(i + 1), root, first, last);
    }
}
