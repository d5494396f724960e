// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IJuries} from "../../src/interfaces/IJuries.sol";
import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {MapHints} from "../../src/types/Hints.sol";
import {TaskId} from "../../src/types/Ids.sol";
import {Seat} from "../../src/types/Seats.sol";
import {Claiming} from "./Claiming.sol";

/// @title Tasks that end while a jury is requested, is open, or owes openings; and draws of juries that
/// nobody executes.
contract JuryEndsTest is Claiming {
    // ------------------------------------------------------------------ conviction

    /// @dev The queue continues: the draw pays its executor, finds the same accounts, and binds nobody.
    function test_convict_juryAsked_succeeds() public {
        _start();
        _claim(0, 3);
        uint256 before = vm.snapshotState();
        _drawWith(0);
        address[] memory due = new address[](jurors);
        for (uint256 slot; slot < jurors; ++slot) {
            due[slot] = _account(FIRST + slot);
        }
        vm.revertToState(before);
        address claimant = _claimant();
        _convict();
        _drop(claimant);
        assertEq(_free(claimant), FUNDS - SEAT_STAKE - DRAW_FEE);
        uint256 had = _free(drawer);
        _drawWith(0);
        assertEq(_free(drawer), had + DRAW_FEE);
        assertEq(board.firstDraw().task, 0);
        for (uint256 slot; slot < jurors; ++slot) {
            assertEq(_account(FIRST + slot), address(0));
            assertEq(board.registrationOf(due[slot]).freeSince, vm.getBlockTimestamp());
        }
        _releaseAll();
        _assertConserved();
    }

    /// @dev Jurors are bound until somebody releases them, once; nobody is penalised.
    function test_convict_juryOpen_succeeds() public {
        _seated(3);
        _voteYes(3);
        _voteNo(4);
        address claimant = _claimant();
        _convict();
        _expectOver();
        _drop(claimant);
        assertEq(_free(claimant), FUNDS - SEAT_STAKE - DRAW_FEE);
        assertEq(vault.burned(), 0);
        _releaseAll();
        for (uint256 slot; slot < jurors; ++slot) {
            vm.expectRevert(abi.encodeWithSelector(Refusals.NothingToRelease.selector, task, FIRST + slot));
            board.release(task, FIRST + slot);
        }
        _assertConserved();
    }

    /// @dev An opening that was owed is no longer owed.
    function test_convict_objected_succeeds() public {
        _objected(3, 15, 0, 0, 1);
        _open(1);
        address claimant = _claimant();
        address liar = _account(FIRST + 1);
        _convict();
        IJuries.Opening memory opening;
        vm.expectRevert(
            abi.encodeWithSelector(Refusals.WrongStatus.selector, task, ITaskMarket.Status.Slashed)
        );
        juries.open(task, FIRST + 1, 0, 0, opening);
        vm.expectRevert(
            abi.encodeWithSelector(Refusals.WrongStatus.selector, task, ITaskMarket.Status.Slashed)
        );
        vm.prank(claimant);
        juries.object(task, 0, 0);
        _expectOver();
        _drop(claimant);
        assertEq(_stakeOf(liar), SEAT_STAKE);
        _releaseAll();
        _assertConserved();
    }

    // ------------------------------------------------------------------ stalls

    /// @dev A drawn jury has its own deadline: nobody can end the task before it, however short the stall
    /// period.
    function test_stall_juryOpen_reverts() public {
        _seated(3);
        _voteYes(127);
        _reach(uint256(vm.getBlockTimestamp()) + 10 * STALL_PERIOD);
        vm.expectRevert(abi.encodeWithSelector(Refusals.JuryOpen.selector, task));
        market.stall(task);
        vm.expectRevert(
            abi.encodeWithSelector(Refusals.TooEarly.selector, type(uint64).max, vm.getBlockTimestamp())
        );
        market.voidTask(task);
        _close();
        // The stall period counts from the verdict.
        uint256 until = vm.getBlockTimestamp() + STALL_PERIOD;
        vm.warp(until);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooEarly.selector, until, until));
        market.stall(task);
        vm.warp(until + 1);
        market.stall(task);
    }

    /// @dev The jury is not drawn: the stall period counts from the round that it waits for.
    function test_stall_juryAsked_succeeds() public {
        _start();
        address claimant = _account(0);
        // Late in the stall period: seat 0 was silent six times.
        for (uint256 k; k < 6; ++k) {
            _attestedBut(0);
            _redraw();
            _drawWith(bytes32(k));
            claimant = _account(0);
        }
        _claim(0, 3);
        uint256 until = beacon.timeOf(board.firstDraw().round) + STALL_PERIOD;
        vm.warp(until);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooEarly.selector, until, until));
        market.stall(task);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotStalled.selector, task));
        board.lapse(task);
        vm.warp(until + 1);
        market.stall(task);
        assertEq(uint256(market.taskOf(task).status), uint256(ITaskMarket.Status.Unpaid));
        _expectOver();
        _drop(claimant);
        _drawWith(0);
        assertEq(_account(FIRST), address(0));
        _reach(uint256(market.taskOf(task).challengeUntil) + 1);
        market.closeStalled(task);
        assertEq(_free(solver), FUNDS);
        _releaseAll();
        _assertConserved();
    }

    // ------------------------------------------------------------------ lapses

    /// @dev A look's jury that nobody draws ends with the looks: the task can be settled, and the claimant
    /// does not count as silent.
    function test_lapse_juryOfALook_succeeds() public {
        chance = 5_000;
        _looked(3);
        _attest(32);
        address claimant = _account(33);
        _claim(33, 3);
        uint64 until = uint64(beacon.timeOf(board.firstDraw().round)) + STALL_PERIOD;
        vm.warp(until);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooEarly.selector, until, until));
        board.lapse(task);
        vm.expectRevert(abi.encodeWithSelector(Refusals.JuryOpen.selector, task));
        juries.drop(task);
        vm.warp(until + 1);
        board.lapse(task);
        (uint256 none, bool pending,,,) = board.juryOf(task);
        assertEq(none, 0);
        assertFalse(pending);
        assertTrue(_audit().audited);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NoClaim.selector, task));
        _close();
        vm.expectRevert(abi.encodeWithSelector(Refusals.NoClaim.selector, task));
        vm.prank(claimant);
        juries.object(task, 0, 0);
        _drop(claimant);
        // The queue continues, and seats nobody.
        bytes memory audit = abi.encode(_audit());
        uint256 had = _free(drawer);
        _drawWith(0);
        assertEq(_free(drawer), had + DRAW_FEE);
        assertEq(abi.encode(_audit()), audit);
        assertEq(_account(FIRST), address(0));
        _settle();
        assertEq(_free(claimant), FUNDS - SEAT_STAKE - DRAW_FEE);
        _releaseAll();
        _assertConserved();
    }

    // ------------------------------------------------------------------ dropping

    function test_drop_refused_reverts() public {
        _start();
        vm.expectRevert(abi.encodeWithSelector(Refusals.NoClaim.selector, task));
        juries.drop(task);
        _claim(0, 3);
        vm.expectRevert(abi.encodeWithSelector(Refusals.JuryOpen.selector, task));
        juries.drop(task);
        _drawWith(0);
        vm.expectRevert(abi.encodeWithSelector(Refusals.JuryOpen.selector, task));
        juries.drop(task);
        _voteNo(127);
        _reach(uint256(_audit().until) + 1);
        _close();
        vm.expectRevert(abi.encodeWithSelector(Refusals.NoClaim.selector, task));
        juries.drop(task);
    }

    /// @dev Juries of different tasks are independent: claims, draws and verdicts run in parallel.
    function test_drop_twoTasks_succeeds() public {
        _register(12);
        _start();
        TaskId first = task;
        delete checkpoints;
        _start();
        TaskId second_ = task;
        task = first;
        address claimant = _account(0);
        _claim(0, 3);
        task = second_;
        _claim(0, 3);
        task = first;
        _convict();
        MapHints[2] memory none;
        // The first task's draw is first in the queue, although the task is over.
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotFirst.selector, first, second_));
        board.draw(second_, "", none);
        _drawWith(0);
        _drop(claimant);
        task = second_;
        _drawWith(0);
        _voteYes(127);
        _reach(uint256(_audit().until) + MOVE_TIME + 1);
        _close();
        assertEq(uint256(market.taskOf(task).status), uint256(ITaskMarket.Status.Submitted));
        _assertConserved();
    }

    // ------------------------------------------------------------------ inside

    /// @dev Closing is no longer possible.
    function _expectOver() private {
        ITaskMarket.Status status = market.taskOf(task).status;
        vm.expectRevert(abi.encodeWithSelector(Refusals.WrongStatus.selector, task, status));
        _close();
    }

    function _drop(address claimant) private {
        uint256 had = _free(claimant);
        IJuries.Claim memory claim = juries.claimOf(task);
        vm.expectEmit();
        emit IJuries.Dropped(task, claim.seat, claimant);
        vm.prank(anyone);
        juries.drop(task);
        assertEq(_free(claimant), had + SEAT_FEE);
        assertEq(juries.claimOf(task).account, address(0));
        vm.expectRevert(abi.encodeWithSelector(Refusals.NoClaim.selector, task));
        juries.drop(task);
    }

    /// @dev All seats but this one are attested.
    function _attestedBut(uint256 silent) private {
        for (uint256 seat; seat < seats; ++seat) {
            Seat memory found = board.seatOf(task, seat);
            if (seat != silent && !found.attested) _attest(seat);
        }
    }
}
