// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {TaskId} from "../../src/types/Ids.sol";
import {Terms} from "../../src/types/Terms.sol";
import {Deployment} from "../market/Deployment.sol";

/// @title Misuse of informing: to earn, to end a task that was audited, to be freed twice, or to fill a seat
/// twice.
contract InformersTest is Deployment {
    uint256 private constant LOCK = 40 * uint256(UNIT);

    /// @dev An account whose accomplice reveals its salt gets half of the lock back. Executing the seat's
    /// next draw itself does not make that a gain either.
    function test_inform_oneself_losesHalf_succeeds() public {
        TaskId task = _attested();
        address account = board.seatOf(task, 1).account;
        address accomplice = makeAddr("accomplice");
        _inform(task, 1, accomplice);
        _silence(task);
        board.redraw(task);
        drawer = accomplice;
        _draw(task);
        vm.prank(account);
        board.resume();
        assertEq(vault.free(account) + vault.free(accomplice), FUNDS - SEAT_STAKE - LOCK / 2 + DRAW_FEE);
        // An account can also inform on itself: the contract does not treat the account differently.
        account = board.seatOf(task, 0).account;
        _inform(task, 0, account);
        assertEq(vault.free(account), FUNDS - SEAT_STAKE + LOCK / 2);
        assertEq(_remaining(board.registrationOf(account).lock), SEAT_STAKE - LOCK);
    }

    /// @dev The solver computed the seat's digest, so it knows the salt and can inform at no risk.
    function test_inform_bySolver_succeeds() public {
        TaskId task = _attested();
        _inform(task, 2, solver);
        assertEq(vault.free(solver), FUNDS - STAKE + LOCK / 2);
        _fill(task, 2);
        _endWindow(task);
        market.settle(task);
        assertEq(vault.free(solver), FUNDS + LOCK / 2 + 1);
    }

    /// @dev A second seat is emptied while a draw is pending: that draw does not fill it, and the next draw
    /// has its own purse.
    function test_inform_whileADrawIsPending_succeeds() public {
        TaskId task = _attested();
        _inform(task, 0, rival);
        _silence(task);
        board.redraw(task);
        _inform(task, 1, rival);
        assertEq(board.firstDraw().seats, 1);
        uint48 purse = board.auditOf(task).purse;
        assertNotEq(purse, board.firstDraw().purse);
        vm.expectRevert(abi.encodeWithSelector(Refusals.DrawPending.selector, task));
        board.redraw(task);
        _draw(task);
        assertNotEq(board.seatOf(task, 0).account, address(0));
        assertEq(board.seatOf(task, 1).account, address(0));
        _attest(task, 0);
        _endWindow(task);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAudited.selector, task));
        market.settle(task);
        board.redraw(task);
        assertEq(board.firstDraw().purse, purse);
        _draw(task);
        _attest(task, 1);
        _endWindow(task);
        market.settle(task);
        assertEq(board.auditOf(task).escrowDraws, 1);
        assertEq(vault.free(drawer), 3 * DRAW_FEE);
    }

    /// @dev One account fills the only seat again and again and is caught each time. Each time it loses a
    /// lock out of a stake that it had topped up, and it never holds more than one seat.
    function test_inform_theSameAccountAgain_succeeds() public {
        (TaskId task, address only) = _ofOne();
        for (uint256 n = 1; n <= 3; ++n) {
            _attest(task, 0);
            _inform(task, 0, rival);
            assertEq(_remaining(board.registrationOf(only).lock), SEAT_STAKE - LOCK);
            vm.prank(only);
            board.resume();
            assertEq(vault.free(only), FUNDS - SEAT_STAKE - n * LOCK);
            _silence(task);
            board.redraw(task);
            _draw(task);
            assertEq(board.seatOf(task, 0).account, only);
            assertEq(board.registrationOf(only).freeSince, type(uint40).max);
        }
        assertEq(vault.free(rival), FUNDS + 3 * LOCK / 2);
        assertEq(board.auditOf(task).attested, 0);
    }

    /// @dev An account is silent first and caught later in the same task: the informer still gets half of a
    /// whole lock.
    function test_inform_afterASilence_succeeds() public {
        (TaskId task, address only) = _ofOne();
        _silence(task);
        board.redraw(task);
        vm.prank(only);
        board.resume();
        // Only a round that is fixed after that can draw it.
        _draw(task);
        assertEq(board.seatOf(task, 0).account, address(0));
        _silence(task);
        board.redraw(task);
        _draw(task);
        _attest(task, 0);
        _inform(task, 0, rival);
        assertEq(vault.free(rival), FUNDS + LOCK / 2);
        assertEq(_remaining(board.registrationOf(only).lock), SEAT_STAKE - LOCK);
    }

    /// @dev The emptied seat frees nobody when the task ends: neither its last account, which may be bound
    /// elsewhere by now, nor any account twice.
    function test_release_emptiedSeat_reverts() public {
        (TaskId task, address only) = _ofOne();
        TaskId other = _assigned(_one(), 1);
        _attest(task, 0);
        _inform(task, 0, rival);
        vm.prank(only);
        board.resume();
        vm.warp(vm.getBlockTimestamp() + 1);
        _submit(other);
        _draw(other);
        assertEq(board.seatOf(other, 0).account, only);
        _convict(task);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NothingToRelease.selector, task, 0));
        board.release(task, 0);
        assertEq(board.registrationOf(only).freeSince, type(uint40).max);
    }

    /// @dev The submitter's accomplice empties its own seat of a task whose escrow has paid for all of its
    /// draws. The purse pays for another draw, so the task cannot be voided and the solver can still be paid
    /// for its training.
    function test_voidTask_seatEmptiedByItself_reverts() public {
        Terms memory terms = _terms();
        terms.verifiers = 7;
        TaskId task = _drawn(terms, 1);
        for (uint256 n; n < 7; ++n) {
            _attestFound(task);
            _silence(task);
            board.redraw(task);
            if (n == 6) _registered("seventh", 1);
            _draw(task);
        }
        assertEq(board.auditOf(task).escrowDraws, 8);
        _attestFound(task);
        _endWindow(task);
        _inform(task, 3, submitter);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotVoidable.selector, task));
        market.voidTask(task);
        board.redraw(task);
        assertEq(board.auditOf(task).escrowDraws, 8);
    }

    /// @dev Emptying a seat does not at once stall a task that a game has kept open for longer than the stall
    /// period: the period restarts.
    function test_stall_seatEmptiedLate_reverts() public {
        TaskId task = _attested();
        vm.prank(game);
        market.gameOpened(task);
        _reach(uint64(vm.getBlockTimestamp()) + STALL_PERIOD + 1);
        vm.prank(game);
        market.gameClosed(task);
        _inform(task, 1, submitter);
        uint64 until = uint64(vm.getBlockTimestamp()) + STALL_PERIOD;
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooEarly.selector, until, vm.getBlockTimestamp()));
        market.stall(task);
        _fill(task, 1);
        _endWindow(task);
        market.settle(task);
        assertEq(uint8(market.taskOf(task).status), uint8(ITaskMarket.Status.Settled));
    }

    /// @dev A purse does not keep a task from ending: a task that has one and is left waiting stalls as
    /// usual.
    function test_stall_withPurse_succeeds() public {
        TaskId task = _attested();
        _inform(task, 1, rival);
        _reach(uint64(vm.getBlockTimestamp()) + STALL_PERIOD + 1);
        market.stall(task);
        board.burnPurse(task);
        _endWindow(task);
        market.closeStalled(task);
        assertEq(uint8(market.taskOf(task).status), uint8(ITaskMarket.Status.Void));
        // The two attested seats get their fees, the informed one gets none.
        assertEq(_remaining(market.taskOf(task).escrow), 0);
    }

    /// @dev Two informers know the same salt and have both committed: the first gets everything.
    function test_inform_twoOfOneSeat_reverts() public {
        TaskId task = _attested();
        bytes32 salt = _salt(board.seatOf(task, 1).account);
        _commitInforming(task, 1, rival, salt);
        _commitInforming(task, 1, challenger, salt);
        vm.roll(vm.getBlockNumber() + 1);
        vm.prank(challenger);
        looks.inform(task, 1, DIGEST, salt);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAttested.selector, task, 1));
        vm.prank(rival);
        looks.inform(task, 1, DIGEST, salt);
        assertEq(vault.free(challenger), LOCK / 2);
        assertEq(vault.free(rival), FUNDS);
    }

    /// @dev Nobody can take a seat's lock with the salt of another seat: the commitment names the seat, and
    /// each seat has its own attestation.
    function test_inform_ofAnotherSeat_reverts() public {
        TaskId task = _attested();
        bytes32 salt = _salt(board.seatOf(task, 0).account);
        _commitInforming(task, 0, rival, salt);
        vm.roll(vm.getBlockNumber() + 1);
        vm.expectPartialRevert(Refusals.NotCommitted.selector);
        vm.prank(rival);
        looks.inform(task, 1, DIGEST, salt);
        _commitInforming(task, 1, rival, salt);
        vm.roll(vm.getBlockNumber() + 1);
        vm.expectPartialRevert(Refusals.WrongAttestation.selector);
        vm.prank(rival);
        looks.inform(task, 1, DIGEST, salt);
    }

    // ------------------------------------------------------------------ inside

    function _attested() private returns (TaskId task) {
        task = _drawn(1);
        _attestAll(task);
    }

    /// @dev Draws the seat again and attests it.
    function _fill(TaskId task, uint256 seat) private {
        _silence(task);
        board.redraw(task);
        _draw(task);
        _attest(task, seat);
    }

    function _one() private view returns (Terms memory terms) {
        terms = _terms();
        terms.verifiers = 1;
    }

    /// @dev A task with one seat, and the only account available for it.
    function _ofOne() private returns (TaskId task, address only) {
        for (uint256 i = 1; i < VERIFIERS; ++i) {
            vm.prank(verifiers[i]);
            board.resign();
        }
        vm.warp(vm.getBlockTimestamp() + 1);
        return (_drawn(_one(), 1), verifiers[0]);
    }

    function _attestFound(TaskId task) private {
        uint256 count = board.seatsOf(task).length;
        for (uint256 i; i < count; ++i) {
            if (board.seatOf(task, i).account != address(0) && !board.seatOf(task, i).attested) {
                _attest(task, i);
            }
        }
    }

    function _commitInforming(TaskId task, uint256 seat, address informer, bytes32 salt) private {
        vm.prank(informer);
        looks.commitInforming(
            keccak256(abi.encode(block.chainid, address(looks), task, seat, informer, salt))
        );
    }
}
