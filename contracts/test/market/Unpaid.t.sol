// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {TaskId} from "../../src/types/Ids.sol";
import {Terms} from "../../src/types/Terms.sol";
import {Deployment} from "./Deployment.sol";

/// @title Submitted tasks that were not audited: seats stay empty, accounts stay silent, or the beacon stops.
contract UnpaidTest is Deployment {
    uint128 private constant PRICE = 51;
    /// @dev Twice the training period and twice clock and allowance of the terms.
    uint64 private constant RETRAINING = 2 * 1000 + 2 * 90;

    // ------------------------------------------------------------------ void

    /// @dev Six accounts for seven seats: six are paid, and so are the escrow's eight draws.
    function test_voidTask_emptySeat_succeeds() public {
        (TaskId task, Terms memory terms) = _withEmptySeat();
        uint256 due = vault.free(submitter) + _escrowOf(terms) - 6 * SEAT_FEE - 8 * uint256(DRAW_FEE);
        _endWindow(task);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAudited.selector, task));
        market.settle(task);
        vm.expectEmit();
        emit ITaskMarket.Voided(task, due - vault.free(submitter), 0);
        market.voidTask(task);
        assertEq(uint8(market.taskOf(task).status), uint8(ITaskMarket.Status.Void));
        assertEq(vault.free(submitter), due);
        assertEq(vault.free(solver), FUNDS);
        assertEq(vault.free(drawer), 8 * uint256(DRAW_FEE));
        for (uint256 i; i < VERIFIERS; ++i) {
            assertEq(vault.free(verifiers[i]), FUNDS - SEAT_STAKE + SEAT_FEE);
        }
        assertEq(vault.burned(), 0);
        assertEq(_remaining(market.taskOf(task).escrow), 0);
        assertEq(_remaining(market.taskOf(task).stake), 0);
    }

    /// @dev An account that found a difference can challenge until the end of the window.
    function test_voidTask_early_reverts() public {
        (TaskId task,) = _withEmptySeat();
        uint64 until = market.taskOf(task).challengeUntil;
        vm.warp(until);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooEarly.selector, until, until));
        market.voidTask(task);
        vm.prank(game);
        market.gameOpened(task);
        vm.warp(until + 1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.GamesOpen.selector, task, 1));
        market.voidTask(task);
    }

    /// @dev The escrow can pay for more draws.
    function test_voidTask_drawsLeft_reverts() public {
        TaskId task = _drawn(_seven(), PRICE);
        _endWindow(task);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotVoidable.selector, task));
        market.voidTask(task);
    }

    function test_voidTask_everySeatTaken_reverts() public {
        TaskId task = _audited(PRICE);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotVoidable.selector, task));
        market.voidTask(task);
    }

    // ------------------------------------------------------------------ stall

    /// @dev The beacon stops: nobody could audit, and nobody is to blame. Half of the price, rounded down,
    /// goes to the solver.
    function test_closeStalled_undrawn_succeeds() public {
        TaskId task = _submitted(PRICE);
        uint256 had = vault.free(submitter);
        uint64 since = uint64(beacon.timeOf(board.firstDraw().round));
        vm.warp(since + STALL_PERIOD);
        _expectTooEarly(since + STALL_PERIOD);
        market.stall(task);
        vm.warp(since + STALL_PERIOD + 1);
        uint64 until = uint64(block.timestamp) + RETRAINING;
        vm.expectEmit();
        emit ITaskMarket.Stalled(task, until);
        market.stall(task);
        assertEq(uint8(market.taskOf(task).status), uint8(ITaskMarket.Status.Unpaid));
        assertEq(market.taskOf(task).challengeUntil, until);
        vm.warp(until);
        _expectTooEarly(until);
        market.closeStalled(task);
        vm.warp(until + 1);
        // The fee of the pending draw stays.
        uint256 refund = _escrowOf(_terms()) - PRICE / 2 - DRAW_FEE;
        vm.expectEmit();
        emit ITaskMarket.Voided(task, refund, PRICE / 2);
        market.closeStalled(task);
        assertEq(vault.free(solver), FUNDS + PRICE / 2);
        assertEq(vault.free(submitter), had + refund);
        assertEq(vault.burned(), 0);
        assertEq(_remaining(market.taskOf(task).escrow), DRAW_FEE);
        // The beacon resumes, and the executor of the draw is paid. The draw binds nobody.
        _draw(task);
        assertEq(vault.free(drawer), DRAW_FEE);
        assertEq(_remaining(market.taskOf(task).escrow), 0);
        assertEq(board.seatsOf(task).length, 0);
        assertEq(board.auditOf(task).drawnAt, 0);
    }

    /// @dev Two seats attested, one account is silent, and nobody requests another draw.
    function test_closeStalled_silentSeat_succeeds() public {
        TaskId task = _drawn(PRICE);
        uint64 since = uint64(block.timestamp);
        _attest(task, 0);
        _attest(task, 2);
        vm.warp(since + STALL_PERIOD);
        _expectTooEarly(since + STALL_PERIOD);
        market.stall(task);
        vm.warp(since + STALL_PERIOD + 1);
        market.stall(task);
        _endWindow(task);
        uint256 had = vault.free(submitter);
        uint256 refund = _escrowOf(_terms()) - 2 * SEAT_FEE - DRAW_FEE;
        vm.expectEmit();
        emit ITaskMarket.Voided(task, refund, 0);
        market.closeStalled(task);
        assertEq(vault.free(solver), FUNDS);
        assertEq(vault.free(submitter), had + refund);
        address[] memory accounts = _accounts(task);
        assertEq(vault.free(accounts[0]), FUNDS - SEAT_STAKE + SEAT_FEE);
        assertEq(vault.free(accounts[1]), FUNDS - SEAT_STAKE);
        assertEq(vault.free(accounts[2]), FUNDS - SEAT_STAKE + SEAT_FEE);
        assertEq(_remaining(market.taskOf(task).escrow), 0);
    }

    /// @dev A second draw, paid by the escrow, is pending when the task stalls: its fee stays in the escrow,
    /// once.
    function test_closeStalled_drawAskedAgain_keepsItsFee_succeeds() public {
        TaskId task = _drawn(_seven(), PRICE);
        uint64 since = uint64(block.timestamp);
        _attestFound(task);
        _silence(task);
        board.redraw(task);
        vm.warp(since + STALL_PERIOD + 1);
        market.stall(task);
        _endWindow(task);
        market.closeStalled(task);
        assertEq(_remaining(market.taskOf(task).escrow), DRAW_FEE);
        _draw(task);
        assertEq(vault.free(drawer), 2 * DRAW_FEE);
        assertEq(_remaining(market.taskOf(task).escrow), 0);
    }

    /// @dev A late draw does not lift a stall, and the task cannot be settled, voided or redrawn.
    function test_stall_then_nothingElse_reverts() public {
        TaskId task = _submitted(PRICE);
        vm.warp(beacon.timeOf(board.firstDraw().round) + STALL_PERIOD + 1);
        market.stall(task);
        uint64 until = market.taskOf(task).challengeUntil;
        _draw(task);
        assertEq(market.taskOf(task).challengeUntil, until);
        _expectWrongStatus(task, ITaskMarket.Status.Unpaid);
        market.stall(task);
        _expectWrongStatus(task, ITaskMarket.Status.Unpaid);
        market.settle(task);
        _expectWrongStatus(task, ITaskMarket.Status.Unpaid);
        market.voidTask(task);
        _expectWrongStatus(task, ITaskMarket.Status.Unpaid);
        board.redraw(task);
    }

    function test_stall_attested_reverts() public {
        TaskId task = _audited(PRICE);
        vm.warp(block.timestamp + STALL_PERIOD);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotStalled.selector, task));
        market.stall(task);
        _expectWrongStatus(task, ITaskMarket.Status.Submitted);
        market.closeStalled(task);
    }

    /// @dev A party that trains again can challenge until the end of the window; its conviction pays the
    /// retrainer's reward.
    function test_convict_stalledUndrawn_succeeds() public {
        TaskId task = _submitted(PRICE);
        vm.warp(beacon.timeOf(board.firstDraw().round) + STALL_PERIOD + 1);
        market.stall(task);
        vm.warp(market.taskOf(task).challengeUntil);
        vm.prank(game);
        market.gameOpened(task);
        vm.warp(vm.getBlockTimestamp() + 1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.GamesOpen.selector, task, 1));
        market.closeStalled(task);
        uint256 had = vault.free(submitter);
        vm.prank(game);
        market.convict(task, challenger);
        assertEq(vault.free(challenger), RETRAIN_REWARD);
        assertEq(vault.free(submitter), had + 60 * UNIT + _escrowOf(_terms()) - DRAW_FEE);
        assertEq(_remaining(market.taskOf(task).stake), STAKE - RETRAIN_REWARD - 60 * UNIT);
        assertEq(vault.free(solver), FUNDS - STAKE);
        _draw(task);
        assertEq(vault.free(drawer), DRAW_FEE);
    }

    function test_convict_stalledSilent_succeeds() public {
        TaskId task = _drawn(PRICE);
        _attest(task, 1);
        vm.warp(vm.getBlockTimestamp() + STALL_PERIOD + 1);
        market.stall(task);
        uint256 had = vault.free(submitter);
        vm.startPrank(game);
        market.gameOpened(task);
        market.convict(task, challenger);
        vm.stopPrank();
        assertEq(vault.free(submitter), had + 60 * UNIT + _escrowOf(_terms()) - DRAW_FEE);
        assertEq(_remaining(market.taskOf(task).stake), STAKE - RETRAIN_REWARD - 60 * UNIT);
        assertEq(_remaining(market.taskOf(task).escrow), 0);
    }

    function test_gameOpened_stalledTooLate_reverts() public {
        TaskId task = _submitted(PRICE);
        vm.warp(beacon.timeOf(board.firstDraw().round) + STALL_PERIOD + 1);
        market.stall(task);
        uint64 until = market.taskOf(task).challengeUntil;
        vm.warp(until + 1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooLate.selector, until, until + 1));
        vm.prank(game);
        market.gameOpened(task);
    }

    // ------------------------------------------------------------------ inside

    function _seven() private view returns (Terms memory terms) {
        terms = _terms();
        terms.verifiers = 7;
    }

    /// @dev Drawn eight times; six seats are attested and one is empty.
    function _withEmptySeat() private returns (TaskId task, Terms memory terms) {
        terms = _seven();
        task = _drawn(terms, PRICE);
        for (uint256 n = 2; n <= 8; ++n) {
            _attestFound(task);
            _silence(task);
            board.redraw(task);
            _draw(task);
        }
        _attestFound(task);
        assertEq(board.auditOf(task).attested, 6);
        assertEq(board.auditOf(task).escrowDraws, 8);
    }

    function _attestFound(TaskId task) private {
        for (uint256 i; i < 7; ++i) {
            if (board.seatsOf(task)[i].account != address(0) && !board.seatsOf(task)[i].attested) {
                _attest(task, i);
            }
        }
    }

    function _expectTooEarly(uint64 until) private {
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooEarly.selector, until, vm.getBlockTimestamp()));
    }

    function _expectWrongStatus(TaskId task, ITaskMarket.Status status) private {
        vm.expectRevert(abi.encodeWithSelector(Refusals.WrongStatus.selector, task, status));
    }
}
