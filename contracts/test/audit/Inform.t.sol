// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAuditBoard} from "../../src/interfaces/IAuditBoard.sol";
import {ILooks} from "../../src/interfaces/ILooks.sol";
import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {TaskId} from "../../src/types/Ids.sol";
import {Offer, PendingDraw, Registration} from "../../src/types/Seats.sol";
import {Terms} from "../../src/types/Terms.sol";
import {Deployment} from "../market/Deployment.sol";

/// @title Informing: who gets what, when it is accepted, and how the seat is filled again.
contract InformTest is Deployment {
    /// @dev Half of the lock of 40. From the other half a draw fee pays for the next draw; the rest burns.
    uint256 private constant SHARE = 20 * uint256(UNIT);

    // ------------------------------------------------------------------ who gets what

    function test_inform_takesHalfTheLock_succeeds() public {
        TaskId task = _attested();
        address account = board.seatOf(task, 1).account;
        bytes32 commitment = _commitment(task, 1, rival, _salt(account));
        vm.prank(rival);
        looks.commitInforming(commitment);
        assertEq(looks.committedIn(rival, commitment), vm.getBlockNumber());
        vm.roll(vm.getBlockNumber() + 1);
        uint256 had = vault.free(rival);
        vm.expectEmit();
        emit ILooks.Informed(task, 1, account, rival, SHARE);
        vm.prank(rival);
        looks.inform(task, 1, DIGEST, _salt(account));

        assertEq(vault.free(rival), had + SHARE);
        assertEq(vault.burned(), SHARE - DRAW_FEE);
        Registration memory entry = board.registrationOf(account);
        assertTrue(entry.suspended);
        assertEq(entry.freeSince, type(uint40).max);
        assertEq(_remaining(entry.lock), SEAT_STAKE - 2 * SHARE);
        assertEq(vault.free(account), FUNDS - SEAT_STAKE);
        assertEq(board.seatOf(task, 1).account, address(0));
        assertFalse(board.seatOf(task, 1).attested);
        assertEq(board.attestationOf(task, 1), 0);
        assertEq(board.auditOf(task).attested, 2);
        assertEq(board.auditOf(task).informedAt, vm.getBlockTimestamp());
        assertEq(_remaining(board.auditOf(task).purse), DRAW_FEE);
        assertEq(looks.committedIn(rival, commitment), 0);
    }

    /// @dev The purse pays the next draw, which fills the seat; then the task settles.
    function test_redraw_informedSeat_isPaidByItsPurse_succeeds() public {
        TaskId task = _attested();
        address before = board.seatOf(task, 1).account;
        _inform(task, 1, rival);
        uint64 until = board.auditOf(task).until;
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooEarly.selector, until, vm.getBlockTimestamp()));
        board.redraw(task);
        _silence(task);
        uint48 purse = board.auditOf(task).purse;
        board.redraw(task);
        PendingDraw memory first = board.firstDraw();
        assertEq(first.purse, purse);
        assertEq(first.seats, 2);
        assertEq(board.auditOf(task).purse, 0);
        assertEq(board.auditOf(task).escrowDraws, 1);
        assertFalse(market.taskOf(task).owesDraw);
        _draw(task);
        assertEq(vault.free(drawer), 2 * DRAW_FEE);
        assertEq(_remaining(purse), 0);
        address account = board.seatOf(task, 1).account;
        assertNotEq(account, address(0));
        assertNotEq(account, before);
        _attest(task, 1);
        _endWindow(task);
        market.settle(task);
        assertEq(vault.free(account), FUNDS - SEAT_STAKE + SEAT_FEE);
        assertEq(vault.free(before), FUNDS - SEAT_STAKE);
    }

    /// @dev Two seats, two informers: each gets half of a lock. There is one purse; the whole other half of
    /// the second lock burns.
    function test_inform_ofTwoSeats_succeeds() public {
        TaskId task = _attested();
        _inform(task, 0, rival);
        uint48 purse = board.auditOf(task).purse;
        _inform(task, 2, challenger);
        assertEq(vault.free(rival), FUNDS + SHARE);
        assertEq(vault.free(challenger), SHARE);
        assertEq(vault.burned(), 2 * SHARE - DRAW_FEE);
        assertEq(board.auditOf(task).purse, purse);
        assertEq(board.auditOf(task).attested, 1);
        _silence(task);
        board.redraw(task);
        assertEq(board.firstDraw().seats, 5);
        assertEq(board.firstDraw().purse, purse);
    }

    /// @dev With a silent seat as well, the purse pays, so the silent account's penalty burns entirely.
    function test_redraw_informedAndSilent_succeeds() public {
        TaskId task = _drawn(1);
        _attest(task, 0);
        _attest(task, 1);
        address silent = board.seatOf(task, 2).account;
        _inform(task, 0, rival);
        _silence(task);
        uint256 burned = vault.burned();
        board.redraw(task);
        assertEq(board.firstDraw().seats, 5);
        assertEq(vault.burned() - burned, SEAT_FEE + DRAW_FEE);
        assertEq(_remaining(board.registrationOf(silent).lock), SEAT_STAKE - SEAT_FEE - DRAW_FEE);
    }

    /// @dev For any lock, half rounded down is paid, enough remains for the draw fee, and the rest burns.
    function testFuzz_inform_anyLock_succeeds(uint128 lock, uint128 fee) public {
        Terms memory terms = _terms();
        terms.auditFee = uint128(bound(fee, UNIT, 9 * UNIT));
        uint256 least = 2 * uint256(terms.auditFee) + DRAW_FEE;
        if (least < 2 * DRAW_FEE) least = 2 * DRAW_FEE;
        // The offers bind at most a whole stake.
        terms.seatLock = uint128(bound(lock, least, SEAT_STAKE));
        TaskId task = _drawn(terms, 1);
        _attest(task, 0);
        address account = board.seatOf(task, 0).account;
        _inform(task, 0, rival);
        assertEq(vault.free(rival), FUNDS + terms.seatLock / 2);
        assertEq(_remaining(board.auditOf(task).purse), DRAW_FEE);
        assertEq(vault.burned(), terms.seatLock - terms.seatLock / 2 - DRAW_FEE);
        assertEq(_remaining(board.registrationOf(account).lock), SEAT_STAKE - terms.seatLock);
    }

    /// @dev The minimum lock of a seat without a fee is two draw fees: one for the informer, one for the
    /// draw.
    function test_inform_leastLock_succeeds() public {
        Terms memory terms = _terms();
        (terms.auditFee, terms.seatLock) = (0, 2 * DRAW_FEE - 1);
        vm.expectRevert(
            abi.encodeWithSelector(
                Refusals.OutOfBounds.selector, "seatLock", 2 * DRAW_FEE, STAKE_UNIT << 15, 2 * DRAW_FEE - 1
            )
        );
        vm.prank(submitter);
        market.post(terms);
        terms.seatLock = 2 * DRAW_FEE;
        terms.verifiers = 1;
        address cheap = makeAddr("takes it for nothing");
        _fund(cheap);
        vm.prank(cheap);
        board.register(1, Offer(1e9, 1e6, 100 * UNIT, 0, 0, type(uint32).max));
        TaskId task = _drawn(terms, 1);
        _attest(task, 0);
        _inform(task, 0, rival);
        assertEq(vault.free(rival), FUNDS + DRAW_FEE);
        assertEq(_remaining(board.auditOf(task).purse), DRAW_FEE);
        assertEq(vault.burned(), 0);
    }

    // ------------------------------------------------------------------ what it takes

    function test_inform_notCommitted_reverts() public {
        TaskId task = _attested();
        bytes32 salt = _salt(board.seatOf(task, 1).account);
        vm.expectRevert(
            abi.encodeWithSelector(Refusals.NotCommitted.selector, _commitment(task, 1, address(this), salt))
        );
        looks.inform(task, 1, DIGEST, salt);
    }

    /// @dev A party that copies an informer's pending transaction is too late: its own commitment must be
    /// from an earlier block.
    function test_inform_sameBlock_reverts() public {
        TaskId task = _attested();
        bytes32 salt = _salt(board.seatOf(task, 1).account);
        looks.commitInforming(_commitment(task, 1, address(this), salt));
        vm.expectRevert(abi.encodeWithSelector(Refusals.SameBlock.selector, vm.getBlockNumber()));
        looks.inform(task, 1, DIGEST, salt);
    }

    /// @dev A copied commitment names another informer.
    function test_inform_copiedCommitment_reverts() public {
        TaskId task = _attested();
        bytes32 salt = _salt(board.seatOf(task, 1).account);
        bytes32 commitment = _commitment(task, 1, rival, salt);
        looks.commitInforming(commitment);
        vm.roll(vm.getBlockNumber() + 1);
        vm.expectRevert(
            abi.encodeWithSelector(Refusals.NotCommitted.selector, _commitment(task, 1, address(this), salt))
        );
        looks.inform(task, 1, DIGEST, salt);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotCommitted.selector, commitment));
        vm.prank(rival);
        looks.inform(task, 1, DIGEST, salt);
    }

    function test_commitInforming_twice_reverts() public {
        bytes32 commitment = keccak256("commitment");
        looks.commitInforming(commitment);
        vm.roll(vm.getBlockNumber() + 1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.AlreadyCommitted.selector, commitment));
        looks.commitInforming(commitment);
        vm.prank(rival);
        looks.commitInforming(commitment);
    }

    function test_inform_wrongDigestOrSalt_reverts() public {
        TaskId task = _attested();
        bytes32 salt = _salt(board.seatOf(task, 1).account);
        bytes32 due = keccak256(abi.encode(DIGEST, keccak256(abi.encode(salt))));
        _committed(task, 1, salt);
        bytes32 given = keccak256(abi.encode(bytes32(0), keccak256(abi.encode(salt))));
        vm.expectRevert(abi.encodeWithSelector(Refusals.WrongAttestation.selector, due, given));
        looks.inform(task, 1, 0, salt);
        bytes32 other = _salt(board.seatOf(task, 0).account);
        _committed(task, 1, other);
        given = keccak256(abi.encode(DIGEST, keccak256(abi.encode(other))));
        vm.expectRevert(abi.encodeWithSelector(Refusals.WrongAttestation.selector, due, given));
        looks.inform(task, 1, DIGEST, other);
        looks.inform(task, 1, DIGEST, salt);
    }

    /// @dev Nobody can inform on a seat that is not attested, does not exist, or was already informed on.
    function test_inform_notAttested_reverts() public {
        TaskId task = _drawn(1);
        bytes32 salt = _salt(address(0));
        uint256[4] memory seats = [uint256(0), 3, 32, type(uint256).max];
        for (uint256 i; i < seats.length; ++i) {
            _expectNotAttested(task, seats[i], salt);
        }
        _attest(task, 0);
        _inform(task, 0, rival);
        _expectNotAttested(task, 0, _salt(rival));
    }

    function test_inform_taskOver_reverts() public {
        TaskId task = _attested();
        _endWindow(task);
        market.settle(task);
        _expectWrongStatus(task, ITaskMarket.Status.Settled);
    }

    function test_inform_convicted_reverts() public {
        TaskId task = _attested();
        _convict(task);
        _expectWrongStatus(task, ITaskMarket.Status.Slashed);
    }

    function test_inform_stalled_reverts() public {
        TaskId task = _drawn(1);
        _attest(task, 0);
        _attest(task, 1);
        _reach(uint64(vm.getBlockTimestamp()) + STALL_PERIOD + 1);
        market.stall(task);
        _expectWrongStatus(task, ITaskMarket.Status.Unpaid);
    }

    function test_caught_byStranger_reverts() public {
        TaskId task = _attested();
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAllowed.selector, address(looks), rival));
        vm.prank(rival);
        board.caught(task, 1, rival);
    }

    // ------------------------------------------------------------------ after it

    /// @dev A task with an emptied seat cannot be settled.
    function test_settle_informedSeat_reverts() public {
        TaskId task = _attested();
        _inform(task, 1, rival);
        _endWindow(task);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAudited.selector, task));
        market.settle(task);
    }

    /// @dev Informing after the window but before settlement is accepted. Another window begins with the next
    /// draw.
    function test_inform_afterTheWindow_succeeds() public {
        TaskId task = _attested();
        _endWindow(task);
        _inform(task, 1, rival);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAudited.selector, task));
        market.settle(task);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotVoidable.selector, task));
        market.voidTask(task);
        board.redraw(task);
        assertEq(market.taskOf(task).challengeUntil, type(uint64).max);
        _draw(task);
        assertEq(market.taskOf(task).challengeUntil, vm.getBlockTimestamp() + _terms().challengePeriod);
        _attest(task, 1);
        _endWindow(task);
        market.settle(task);
    }

    function test_resume_informed_succeeds() public {
        TaskId task = _attested();
        address account = board.seatOf(task, 1).account;
        _inform(task, 1, rival);
        vm.expectEmit();
        emit IAuditBoard.Resumed(account);
        vm.prank(account);
        board.resume();
        Registration memory entry = board.registrationOf(account);
        assertFalse(entry.suspended);
        assertEq(entry.freeSince, vm.getBlockTimestamp());
        assertEq(_remaining(entry.lock), SEAT_STAKE);
        assertEq(vault.free(account), FUNDS - SEAT_STAKE - 2 * SHARE);
    }

    /// @dev An account that resigned before gets what is left, once the unbonding period is over.
    function test_quit_informed_succeeds() public {
        TaskId task = _attested();
        address account = board.seatOf(task, 1).account;
        vm.startPrank(account);
        board.resign();
        vm.warp(vm.getBlockTimestamp() + UNBONDING_PERIOD + 1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.HasSeat.selector, account));
        board.quit();
        vm.stopPrank();
        _inform(task, 1, rival);
        vm.prank(account);
        board.quit();
        assertEq(vault.free(account), FUNDS - 2 * SHARE);
    }

    // ------------------------------------------------------------------ what becomes of a purse

    function test_burnPurse_convicted_succeeds() public {
        TaskId task = _attested();
        _inform(task, 1, rival);
        uint48 purse = board.auditOf(task).purse;
        vm.expectRevert(
            abi.encodeWithSelector(Refusals.WrongStatus.selector, task, ITaskMarket.Status.Submitted)
        );
        board.burnPurse(task);
        _convict(task);
        uint256 burned = vault.burned();
        board.burnPurse(task);
        assertEq(vault.burned() - burned, DRAW_FEE);
        assertEq(_remaining(purse), 0);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NoPurse.selector, task));
        board.burnPurse(task);
    }

    /// @dev A requested draw has its purse and pays its executor, whatever happened to the task.
    function test_burnPurse_drawAsked_reverts() public {
        TaskId task = _attested();
        _inform(task, 1, rival);
        _silence(task);
        board.redraw(task);
        _convict(task);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NoPurse.selector, task));
        board.burnPurse(task);
        _draw(task);
        assertEq(vault.free(drawer), 2 * DRAW_FEE);
    }

    // ------------------------------------------------------------------ inside

    function _attested() private returns (TaskId task) {
        task = _drawn(1);
        _attestAll(task);
    }

    function _commitment(TaskId task, uint256 seat, address informer, bytes32 salt)
        private
        view
        returns (bytes32)
    {
        return keccak256(abi.encode(block.chainid, address(looks), task, seat, informer, salt));
    }

    /// @dev Makes this contract's commitment, so that it may inform from now on.
    function _committed(TaskId task, uint256 seat, bytes32 salt) private {
        looks.commitInforming(_commitment(task, seat, address(this), salt));
        vm.roll(vm.getBlockNumber() + 1);
    }

    function _expectNotAttested(TaskId task, uint256 seat, bytes32 salt) private {
        _committed(task, seat, salt);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAttested.selector, task, seat));
        looks.inform(task, seat, DIGEST, salt);
    }

    function _expectWrongStatus(TaskId task, ITaskMarket.Status status) private {
        bytes32 salt = _salt(board.seatOf(task, 1).account);
        _committed(task, 1, salt);
        vm.expectRevert(abi.encodeWithSelector(Refusals.WrongStatus.selector, task, status));
        looks.inform(task, 1, DIGEST, salt);
    }
}
