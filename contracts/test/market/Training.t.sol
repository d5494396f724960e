// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {Rfc9162} from "../../src/libraries/Rfc9162.sol";
import {TaskId} from "../../src/types/Ids.sol";
import {PendingDraw} from "../../src/types/Seats.sol";
import {Terms} from "../../src/types/Terms.sol";
import {Deployment} from "./Deployment.sol";
import {Trees} from "./Trees.sol";

/// @title Progress, submission, a missed deadline.
contract TrainingTest is Deployment {
    bytes32[] private _none;

    // ------------------------------------------------------------------ progress

    /// @dev The tree grows in two steps of any sizes, and is then submitted.
    function testFuzz_progress_growing_succeeds(uint32 first, uint32 second) public {
        first = uint32(bound(first, 1, SEGMENTS - 1));
        second = uint32(bound(second, first + 1, SEGMENTS));
        TaskId task = _assigned(1);
        _progress(task, first);
        _progress(task, second);
        assertEq(market.taskOf(task).root, _root(second));
        assertEq(market.taskOf(task).size, second);
        _submit(task);
    }

    /// @dev An honest run from another initial state cannot even begin.
    function test_progress_otherInitialState_reverts() public {
        TaskId task = _assigned(1);
        bytes32 initial = states[0];
        states[0] = keccak256("another initial state");
        bytes32[] memory path = Trees.path(states, 0, 2);
        bytes32 leaf = sha256(abi.encodePacked(bytes1(0x00), initial));
        bytes32 computed = sha256(abi.encodePacked(bytes1(0x01), leaf, path[0]));
        bytes32 root = _root(2);
        vm.startPrank(solver);
        vm.expectRevert(abi.encodeWithSelector(Refusals.LeafNotInTree.selector, 0, initial, root, computed));
        market.progress(task, root, 2, path, _none);
    }

    /// @dev A checkpoint that was committed cannot be replaced later.
    function test_progress_rewritingHistory_reverts() public {
        TaskId task = _assigned(1);
        _progress(task, 3);
        states[2] = keccak256("another checkpoint");
        bytes32[] memory proof = Trees.consistency(states, 3, 4);
        bytes32 root = _root(4);
        vm.startPrank(solver);
        vm.expectPartialRevert(Rfc9162.InconsistentRoot.selector);
        market.progress(task, root, 4, _none, proof);
    }

    function test_progress_notGrowing_reverts() public {
        TaskId task = _assigned(1);
        _progress(task, 3);
        bytes32 root = _root(3);
        vm.startPrank(solver);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TreeSize.selector, 4, SEGMENTS, 3));
        market.progress(task, root, 3, _none, _none);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TreeSize.selector, 4, SEGMENTS, SEGMENTS + 1));
        market.progress(task, root, SEGMENTS + 1, _none, _none);
    }

    function test_progress_wrongProofs_reverts() public {
        TaskId task = _assigned(1);
        bytes32[] memory path = Trees.path(states, 0, 2);
        (bytes32 two, bytes32 three) = (_root(2), _root(3));
        vm.startPrank(solver);
        vm.expectRevert(Refusals.UnexpectedProof.selector);
        market.progress(task, two, 2, path, path);
        vm.expectRevert(abi.encodeWithSelector(Rfc9162.ProofLength.selector, 1, 0));
        market.progress(task, two, 2, _none, _none);
        market.progress(task, two, 2, path, _none);
        vm.expectRevert(Refusals.UnexpectedProof.selector);
        market.progress(task, three, 3, path, path);
    }

    function test_progress_byStranger_reverts() public {
        TaskId task = _assigned(1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAllowed.selector, solver, rival));
        vm.prank(rival);
        market.progress(task, 0, 1, _none, _none);
    }

    function test_progress_late_reverts() public {
        TaskId task = _assigned(1);
        uint64 until = market.taskOf(task).trainUntil;
        vm.warp(until + 1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooLate.selector, until, until + 1));
        vm.prank(solver);
        market.progress(task, 0, 1, _none, _none);
    }

    function test_progress_beforeAssignment_reverts() public {
        TaskId task = _post();
        vm.expectRevert(
            abi.encodeWithSelector(Refusals.WrongStatus.selector, task, ITaskMarket.Status.Bidding)
        );
        vm.prank(solver);
        market.progress(task, 0, 1, _none, _none);
    }

    // ------------------------------------------------------------------ submit

    function test_submit_withoutProgress_succeeds() public {
        TaskId task = _assigned(1);
        _submit(task);
        ITaskMarket.Task memory entry = market.taskOf(task);
        assertEq(uint8(entry.status), uint8(ITaskMarket.Status.Submitted));
        assertEq(entry.root, _root(SEGMENTS + 1));
        assertEq(entry.size, SEGMENTS + 1);
        assertEq(entry.result, states[SEGMENTS]);
        assertEq(entry.challengeUntil, type(uint64).max);
        assertTrue(entry.owesDraw);
        PendingDraw memory first = board.firstDraw();
        assertEq(first.task, TaskId.unwrap(task));
        assertEq(first.round, beacon.roundFrom(uint64(block.timestamp) + DRAW_DELAY));
        assertEq(first.seats, 7);
    }

    /// @dev The stake comes from the free balance, after the penalty was returned to it.
    function test_submit_locksStake_succeeds() public {
        TaskId task = _withFree(STAKE - 40 * UNIT);
        _submit(task);
        assertEq(vault.free(solver), 0);
        assertEq(_remaining(market.taskOf(task).stake), STAKE);
    }

    function test_submit_withoutStake_reverts() public {
        TaskId task = _withFree(STAKE - 40 * UNIT - 1);
        bytes32 root = _root(SEGMENTS + 1);
        bytes32[] memory first = Trees.path(states, 0, SEGMENTS + 1);
        bytes32[] memory last = Trees.path(states, SEGMENTS, SEGMENTS + 1);
        bytes32 result = states[SEGMENTS];
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotEnoughFree.selector, solver, STAKE, STAKE - 1));
        vm.prank(solver);
        market.submit(task, root, first, _none, result, last);
    }

    /// @dev An honest run from another initial state is refused when it is submitted.
    function test_submit_otherInitialState_reverts() public {
        states[0] = keccak256("another initial state");
        _expectSubmitRefused(
            keccak256(abi.encode("state", 0)), SEGMENTS, SEGMENTS + 1, Refusals.LeafNotInTree.selector
        );
    }

    function test_submit_otherResult_reverts() public {
        _expectSubmitRefused(states[0], SEGMENTS - 1, SEGMENTS + 1, Refusals.LeafNotInTree.selector);
    }

    /// @dev A tree of another size has proofs of another length or another fold.
    function test_submit_shorterTree_reverts() public {
        _expectSubmitRefused(states[0], SEGMENTS - 1, SEGMENTS, Rfc9162.ProofLength.selector);
    }

    function test_submit_twice_reverts() public {
        TaskId task = _submitted(1);
        vm.expectRevert(
            abi.encodeWithSelector(Refusals.WrongStatus.selector, task, ITaskMarket.Status.Submitted)
        );
        vm.prank(solver);
        market.submit(task, 0, _none, _none, 0, _none);
    }

    // ------------------------------------------------------------------ expire

    function test_expire_missedDeadline_succeeds() public {
        TaskId task = _assigned(1);
        _progress(task, 2);
        vm.warp(market.taskOf(task).trainUntil + 1);
        vm.expectEmit();
        emit ITaskMarket.Refunded(task, _escrowOf(_terms()), 40 * UNIT);
        market.expire(task);
        assertEq(vault.free(submitter), FUNDS + 20 * UNIT);
        assertEq(vault.free(solver), FUNDS - 40 * UNIT);
        assertEq(vault.burned(), 20 * UNIT);
    }

    /// @dev Half of the penalty, rounded down, goes to the submitter.
    function testFuzz_expire_anyPenalty_succeeds(uint128 penalty) public {
        Terms memory terms = _terms();
        terms.delayPenalty = penalty = uint128(bound(penalty, 0, STAKE));
        TaskId task = _assigned(terms, 1);
        vm.warp(market.taskOf(task).trainUntil + 1);
        market.expire(task);
        assertEq(vault.free(submitter), FUNDS + penalty / 2);
        assertEq(vault.burned(), penalty - penalty / 2);
        assertEq(vault.free(solver), FUNDS - penalty);
        assertEq(_remaining(market.taskOf(task).stake), 0);
    }

    function test_expire_early_reverts() public {
        TaskId task = _assigned(1);
        uint64 until = market.taskOf(task).trainUntil;
        vm.warp(until);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooEarly.selector, until, until));
        market.expire(task);
    }

    /// @dev Progress is a commitment; nobody challenges it before the submission.
    function test_gameOpened_training_reverts() public {
        TaskId task = _assigned(1);
        _progress(task, 2);
        vm.expectRevert(
            abi.encodeWithSelector(Refusals.WrongStatus.selector, task, ITaskMarket.Status.Training)
        );
        vm.prank(game);
        market.gameOpened(task);
    }

    function test_expire_submitted_reverts() public {
        TaskId task = _submitted(1);
        vm.warp(market.taskOf(task).trainUntil + 1);
        vm.expectRevert(
            abi.encodeWithSelector(Refusals.WrongStatus.selector, task, ITaskMarket.Status.Submitted)
        );
        market.expire(task);
    }

    // ------------------------------------------------------------------ inside

    /// @dev An assigned task whose solver has that many free tokens.
    function _withFree(uint256 amount) private returns (TaskId task) {
        task = _assigned(1);
        vm.prank(solver);
        vault.withdraw(FUNDS - 40 * UNIT - amount);
        assertEq(vault.free(solver), amount);
    }

    /// @dev Terms with r_0 = `initial`; the solver's tree has `size` leaves and opens the last one for state
    /// `result`.
    function _expectSubmitRefused(bytes32 initial, uint32 result, uint32 size, bytes4 why) private {
        Terms memory terms = _terms();
        terms.initialState = initial;
        TaskId task = _assigned(terms, 1);
        bytes32 root = _root(size);
        bytes32[] memory first = Trees.path(states, 0, size);
        bytes32[] memory last = Trees.path(states, size - 1, size);
        vm.startPrank(solver);
        vm.expectPartialRevert(why);
        market.submit(task, root, first, _none, states[result], last);
    }
}
