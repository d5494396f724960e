// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAuditBoard} from "../../src/interfaces/IAuditBoard.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {TaskId} from "../../src/types/Ids.sol";
import {PendingDraw, Registration} from "../../src/types/Seats.sol";
import {Terms} from "../../src/types/Terms.sol";
import {Deployment} from "../market/Deployment.sol";

/// @title Seats that stay silent or empty are drawn again: who pays, who is suspended, how often.
contract RedrawTest is Deployment {
    uint256 private constant PENALTY = SEAT_FEE + uint256(DRAW_FEE);

    // ------------------------------------------------------------------ silence

    /// @dev The silent account loses the seat's fee, which burns, and the draw fee, which pays for the draw.
    function test_redraw_silentSeat_succeeds() public {
        TaskId task = _drawn(1);
        address[] memory before = _accounts(task);
        _attest(task, 0);
        _attest(task, 2);
        uint256 escrow = _remaining(market.taskOf(task).escrow);
        uint64 until = board.auditOf(task).until;
        vm.warp(until);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooEarly.selector, until, until));
        board.redraw(task);
        vm.warp(until + 1);
        uint64 round = beacon.roundFrom(until + 1 + DRAW_DELAY);
        vm.expectEmit();
        emit IAuditBoard.Silent(task, 1, before[1], PENALTY);
        vm.expectEmit();
        emit IAuditBoard.DrawAsked(task, 2, 0, round, 2);
        vm.prank(rival);
        board.redraw(task);

        Registration memory entry = board.registrationOf(before[1]);
        assertTrue(entry.suspended);
        assertEq(entry.freeSince, type(uint40).max);
        assertEq(_remaining(entry.lock), SEAT_STAKE - PENALTY);
        assertEq(vault.burned(), SEAT_FEE);
        assertEq(board.seatsOf(task)[1].account, address(0));
        assertEq(market.taskOf(task).challengeUntil, type(uint64).max);
        assertFalse(market.taskOf(task).owesDraw);
        PendingDraw memory first = board.firstDraw();
        assertEq(first.seats, 2);
        assertEq(first.round, round);
        assertEq(_remaining(first.purse), DRAW_FEE);

        _draw(task);
        assertEq(vault.free(drawer), 2 * DRAW_FEE);
        assertEq(_remaining(first.purse), 0);
        assertEq(_remaining(market.taskOf(task).escrow), escrow);
        assertEq(board.auditOf(task).escrowDraws, 1);
        address[] memory accounts = _accounts(task);
        assertEq(accounts[0], before[0]);
        assertEq(accounts[2], before[2]);
        assertNotEq(accounts[1], before[1]);
        assertNotEq(accounts[1], address(0));
        assertEq(market.taskOf(task).challengeUntil, vm.getBlockTimestamp() + _terms().challengePeriod);
        _attest(task, 1);
        _endWindow(task);
        market.settle(task);
        assertEq(vault.free(accounts[1]), FUNDS - SEAT_STAKE + SEAT_FEE);
        assertEq(vault.free(before[1]), FUNDS - SEAT_STAKE);
    }

    /// @dev Of two silent accounts one pays for the draw; both lose the same amount.
    function test_redraw_twoSilentSeats_succeeds() public {
        TaskId task = _drawn(1);
        address[] memory before = _accounts(task);
        _attest(task, 1);
        _silence(task);
        board.redraw(task);
        assertEq(_remaining(board.registrationOf(before[0]).lock), SEAT_STAKE - PENALTY);
        assertEq(_remaining(board.registrationOf(before[2]).lock), SEAT_STAKE - PENALTY);
        assertEq(_remaining(board.firstDraw().purse), DRAW_FEE);
        assertEq(vault.burned(), 2 * PENALTY - DRAW_FEE);
        _draw(task);
        assertEq(_remaining(market.taskOf(task).escrow), _escrowOf(_terms()) - DRAW_FEE);
        address[] memory accounts = _accounts(task);
        assertNotEq(accounts[0], address(0));
        assertNotEq(accounts[2], address(0));
    }

    /// @dev Every account stays silent, again and again: suspended accounts are not drawn, and then the
    /// escrow pays.
    function test_redraw_everybodySilent_succeeds() public {
        TaskId task = _drawn(1);
        for (uint256 n; n < 2; ++n) {
            _silence(task);
            board.redraw(task);
            _draw(task);
        }
        for (uint256 i; i < VERIFIERS; ++i) {
            assertTrue(board.registrationOf(verifiers[i]).suspended);
        }
        assertEq(board.auditOf(task).escrowDraws, 1);
        _silence(task);
        board.redraw(task);
        assertEq(board.auditOf(task).escrowDraws, 2);
        assertEq(board.firstDraw().purse, 0);
        assertTrue(market.taskOf(task).owesDraw);
    }

    function test_attest_afterTheRedraw_reverts() public {
        TaskId task = _drawn(1);
        address account = board.seatsOf(task)[0].account;
        _silence(task);
        board.redraw(task);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAllowed.selector, address(0), account));
        vm.prank(account);
        board.attest(task, 0, 0, 0);
    }

    // ------------------------------------------------------------------ resume, leave

    function test_resume_makesTheStakeWhole_succeeds() public {
        address account = _suspended();
        uint256 had = vault.free(account);
        vm.expectEmit();
        emit IAuditBoard.Resumed(account);
        vm.prank(account);
        board.resume();
        Registration memory entry = board.registrationOf(account);
        assertEq(_remaining(entry.lock), SEAT_STAKE);
        assertFalse(entry.suspended);
        assertEq(entry.freeSince, vm.getBlockTimestamp());
        assertEq(vault.free(account), had - PENALTY);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotSuspended.selector, account));
        vm.prank(account);
        board.resume();
    }

    function test_resume_notEnough_reverts() public {
        address account = _suspended();
        vm.startPrank(account);
        vault.withdraw(vault.free(account) - PENALTY + 1);
        vm.expectRevert(
            abi.encodeWithSelector(Refusals.NotEnoughFree.selector, account, SEAT_STAKE, SEAT_STAKE - 1)
        );
        board.resume();
        assertTrue(board.registrationOf(account).suspended);
    }

    /// @dev An account that was silent can leave with the rest of its stake.
    function test_quit_suspended_succeeds() public {
        address account = _suspended();
        vm.startPrank(account);
        board.resign();
        vm.warp(vm.getBlockTimestamp() + UNBONDING_PERIOD + 1);
        board.quit();
        assertEq(vault.free(account), FUNDS - PENALTY);
    }

    // ------------------------------------------------------------------ empty seats

    /// @dev Seven seats for six accounts: the escrow pays for eight draws, including the first.
    function test_redraw_emptySeat_eightTimes_succeeds() public {
        Terms memory terms = _terms();
        terms.verifiers = 7;
        TaskId task = _drawn(terms, 1);
        for (uint256 n = 2; n <= 8; ++n) {
            _attestFound(task);
            _silence(task);
            board.redraw(task);
            assertEq(board.auditOf(task).escrowDraws, n);
            assertTrue(market.taskOf(task).owesDraw);
            _draw(task);
            assertEq(vault.free(drawer), n * DRAW_FEE);
            assertEq(_remaining(market.taskOf(task).escrow), _escrowOf(terms) - n * DRAW_FEE);
        }
        _attestFound(task);
        _silence(task);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NoDrawsLeft.selector, task, 8));
        board.redraw(task);
        assertEq(board.auditOf(task).draws, 8);
    }

    /// @dev If one account was silent, the escrow does not pay for drawing an empty seat as well.
    function test_redraw_silentAndEmpty_succeeds() public {
        Terms memory terms = _terms();
        terms.verifiers = 7;
        TaskId task = _drawn(terms, 1);
        _silence(task);
        board.redraw(task);
        assertEq(board.auditOf(task).escrowDraws, 1);
        assertEq(board.firstDraw().seats, 127);
        assertNotEq(board.firstDraw().purse, 0);
    }

    // ------------------------------------------------------------------ not now

    function test_redraw_pending_reverts() public {
        TaskId task = _submitted(1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.DrawPending.selector, task));
        board.redraw(task);
        _draw(task);
        _silence(task);
        board.redraw(task);
        vm.expectRevert(abi.encodeWithSelector(Refusals.DrawPending.selector, task));
        board.redraw(task);
    }

    function test_redraw_allAttested_reverts() public {
        TaskId task = _drawn(1);
        _attestAll(task);
        _silence(task);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NothingToRedraw.selector, task));
        board.redraw(task);
    }

    // ------------------------------------------------------------------ inside

    function _suspended() private returns (address account) {
        TaskId task = _drawn(1);
        account = board.seatsOf(task)[1].account;
        _attest(task, 0);
        _attest(task, 2);
        _silence(task);
        board.redraw(task);
    }

    function _attestFound(TaskId task) private {
        for (uint256 i; i < 7; ++i) {
            if (board.seatsOf(task)[i].account != address(0) && !board.seatsOf(task)[i].attested) {
                _attest(task, i);
            }
        }
    }
}
