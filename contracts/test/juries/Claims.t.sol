// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAuditBoard} from "../../src/interfaces/IAuditBoard.sol";
import {IJuries} from "../../src/interfaces/IJuries.sol";
import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {Audit, PendingDraw} from "../../src/types/Seats.sol";
import {Claiming} from "./Claiming.sol";

/// @title Who may claim that data are withheld, what a claim locks, and the draw of the jury.
contract ClaimsTest is Claiming {
    function test_claim_locksBondAndDrawFee_succeeds() public {
        _start();
        address account = _account(1);
        uint256 had = _free(account);
        uint64 round = beacon.roundFrom(uint64(vm.getBlockTimestamp()) + 4);
        vm.expectEmit();
        emit IAuditBoard.DrawAsked(task, 2, 5, round, 127);
        vm.expectEmit();
        emit IJuries.Claimed(task, 1, account, 3);
        _claim(1, 3);

        IJuries.Claim memory claim = juries.claimOf(task);
        assertEq(claim.account, account);
        assertEq(claim.seat, 1);
        assertEq(claim.item, 3);
        assertEq(claim.until, 0);
        assertEq(_remaining(claim.bond), SEAT_FEE);
        assertEq(_free(account), had - SEAT_FEE - DRAW_FEE);
        PendingDraw memory first = board.firstDraw();
        assertEq(first.level, 5);
        assertEq(first.seats, 127);
        assertEq(_remaining(first.purse), DRAW_FEE);
        (uint256 claimant, bool pending,, uint256 yes, uint256 no) = board.juryOf(task);
        assertEq(claimant, 2);
        assertTrue(pending);
        assertEq(yes + no, 0);
        assertEq(market.taskOf(task).challengeUntil, type(uint64).max);
        assertFalse(market.taskOf(task).owesDraw);
        _assertConserved();
    }

    /// @dev Jurors are drawn like seats. The claimant pays the draw fee, and the challenge window stays open.
    function test_draw_jury_succeeds() public {
        _start();
        _claim(0, CONSTANTS);
        uint256 escrow = _escrow();
        uint256 had = _free(drawer);
        Audit memory before = _audit();
        _drawWith(0);
        assertEq(_free(drawer), had + DRAW_FEE);
        assertEq(_escrow(), escrow);
        uint256 until = vm.getBlockTimestamp() + ATTEST_PERIOD;
        Audit memory audit = _audit();
        assertEq(audit.until, until);
        assertFalse(audit.pending);
        assertEq(market.taskOf(task).challengeUntil, type(uint64).max);
        // A jury does not change the rest of the audit.
        (before.until, before.pending) = (audit.until, false);
        assertEq(abi.encode(audit), abi.encode(before));
        for (uint256 slot; slot < jurors; ++slot) {
            address account = _account(FIRST + slot);
            assertNotEq(account, address(0));
            assertEq(board.registrationOf(account).freeSince, type(uint40).max);
        }
        assertEq(_account(FIRST + jurors), address(0));
        (uint256[] memory numbers,) = board.looksOf(task);
        assertEq(numbers.length, 0);
        assertEq(board.seatsOf(task).length, seats);
        _assertConserved();
    }

    function test_claim_noJuries_reverts() public {
        jurors = 0;
        _start();
        _expectNoClaim(0, 0, abi.encodeWithSelector(Refusals.NoJuries.selector, task));
    }

    function test_claim_noSuchItem_reverts() public {
        _start();
        bytes memory refusal =
            abi.encodeWithSelector(Refusals.OutOfBounds.selector, "item", 0, CONSTANTS, CONSTANTS + 1);
        _expectNoClaim(0, CONSTANTS + 1, refusal);
        _claim(0, CONSTANTS);
    }

    /// @dev For another account's seat, for a seat, look and juror that do not exist, and for a number whose
    /// low byte is the account's seat.
    function test_claim_notOwnSeat_reverts() public {
        _start();
        address account = _account(0);
        uint256[5] memory others = [uint256(1), 2, 32, FIRST, 256];
        for (uint256 k; k < others.length; ++k) {
            address due = _account(others[k]);
            vm.expectRevert(abi.encodeWithSelector(Refusals.NotAllowed.selector, due, account));
            vm.prank(account);
            juries.claim(task, others[k], 0);
        }
    }

    function test_claim_attested_reverts() public {
        _start();
        _attest(0);
        _expectNoClaim(0, 0, abi.encodeWithSelector(Refusals.AlreadyAttested.selector, task, 0));
    }

    function test_claim_late_reverts() public {
        _start();
        uint64 until = _audit().until;
        vm.warp(until + 1);
        _expectNoClaim(0, 0, abi.encodeWithSelector(Refusals.TooLate.selector, until, until + 1));
        vm.warp(until);
        _claim(0, 0);
    }

    /// @dev One jury at a time, before its draw and after it.
    function test_claim_whileAJuryIsOpen_reverts() public {
        _start();
        _claim(0, 1);
        _expectNoClaim(1, 2, abi.encodeWithSelector(Refusals.JuryOpen.selector, task));
        _drawWith(0);
        _expectNoClaim(1, 2, abi.encodeWithSelector(Refusals.JuryOpen.selector, task));
        _expectNoClaim(0, 1, abi.encodeWithSelector(Refusals.JuryOpen.selector, task));
        // A juror is not a claimant.
        _expectNoClaim(FIRST, 1, abi.encodeWithSelector(Refusals.JuryOpen.selector, task));
    }

    /// @dev A seat of two segments has six claims, whatever their items and verdicts. The other seat has its
    /// own six.
    function test_claim_afterTheLast_reverts() public {
        jurors = 6;
        _voted(1, 63, 0);
        _reach(uint256(_audit().until) + MOVE_TIME + 1);
        _close();
        _undecided(1, 1);
        for (uint256 k = 1; k < 6; ++k) {
            _undecided(0, 2);
        }
        bytes memory refusal = abi.encodeWithSelector(Refusals.NoClaimsLeft.selector, task, 0, 6);
        _expectNoClaim(0, 3, refusal);
        for (uint256 k = 1; k < 6; ++k) {
            _undecided(1, 1);
        }
        _expectNoClaim(0, 3, refusal);
        _expectNoClaim(1, 1, abi.encodeWithSelector(Refusals.NoClaimsLeft.selector, task, 1, 6));
        _assertConserved();
    }

    /// @dev A solver that serves the claimed item to the jurors and withholds the next one faces a claim for
    /// each in turn.
    function test_claim_everyItem_succeeds() public {
        (seats, each, jurors) = (1, 6, 3);
        _start();
        for (uint32 item; item <= CONSTANTS; ++item) {
            vm.warp(vm.getBlockTimestamp() + 1);
            _claim(0, item);
            _drawWith(bytes32(uint256(item)));
            _voteYes(7);
            _reach(uint256(_audit().until) + MOVE_TIME + 1);
            _close();
        }
        _attest(0);
        _settle();
    }

    /// @dev The account that is drawn into the seat afterwards has its own claims: five, for one segment.
    function test_claim_drawnAgain_succeeds() public {
        (seats, each, jurors) = (1, 1, 6);
        _start();
        for (uint256 k; k < 5; ++k) {
            _undecided(0, 1);
        }
        address first = _account(0);
        _expectNoClaim(0, 1, abi.encodeWithSelector(Refusals.NoClaimsLeft.selector, task, 0, 5));
        _reach(uint256(_audit().until) + 1);
        _redraw();
        _drawWith(0);
        assertNotEq(_account(0), first);
        for (uint256 k; k < 5; ++k) {
            _undecided(0, 1);
        }
        _expectNoClaim(0, 1, abi.encodeWithSelector(Refusals.NoClaimsLeft.selector, task, 0, 5));
    }

    function test_claim_overTask_reverts() public {
        _start();
        _convict();
        bytes memory refusal =
            abi.encodeWithSelector(Refusals.WrongStatus.selector, task, ITaskMarket.Status.Slashed);
        _expectNoClaim(0, 0, refusal);
    }

    /// @dev An account without enough free tokens for the bond and the draw cannot claim, and nothing is left
    /// half done.
    function test_claim_notEnoughFree_reverts() public {
        _start();
        address account = _account(0);
        uint256 kept = DRAW_FEE + SEAT_FEE - 1;
        uint256 gone = _free(account) - kept;
        vm.prank(account);
        vault.withdraw(gone);
        bytes memory before = abi.encode(_audit());
        bytes memory refusal =
            abi.encodeWithSelector(Refusals.NotEnoughFree.selector, account, DRAW_FEE, DRAW_FEE - 1);
        _expectNoClaim(0, 0, refusal);
        assertEq(_free(account), kept);
        assertEq(abi.encode(_audit()), before);
        assertEq(board.firstDraw().task, 0);
        assertEq(market.taskOf(task).challengeUntil, _audit().until + REST_OF_WINDOW);
    }

    /// @dev Claims leave 127 draws of a task for its seats and looks.
    function test_claim_drawsOfOthers_reverts() public {
        (seats, each) = (1, 1);
        _start();
        _silentUntil(127);
        uint256 before = vm.snapshotState();
        _claim(0, 0);
        vm.revertToState(before);
        _silentUntil(128);
        bytes memory refusal = abi.encodeWithSelector(Refusals.NoDrawsLeft.selector, task, 128);
        _expectNoClaim(0, 0, refusal);
        _silentUntil(255);
        _expectNoClaim(0, 0, refusal);
        _reach(uint256(_audit().until) + 1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NoDrawsLeft.selector, task, 255));
        board.redraw(task);
    }

    /// @dev The claiming account waits for its jury; the other seat attests in time.
    function test_attest_claimant_reverts() public {
        _start();
        _claim(0, 1);
        _expectNoAttestation();
        _drawWith(0);
        _expectNoAttestation();
        _attest(1);
        assertEq(_audit().attested, 1);
    }

    /// @dev Nobody counts as silent while a jury is open: its claimant may be right for everyone.
    function test_redraw_whileAJuryIsOpen_reverts() public {
        _start();
        _claim(0, 1);
        _reach(uint256(_audit().until) + 1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.DrawPending.selector, task));
        board.redraw(task);
        _drawWith(0);
        _reach(uint256(_audit().until) + 1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.JuryOpen.selector, task));
        board.redraw(task);
    }

    function test_hooks_byStranger_reverts() public {
        _start();
        vm.startPrank(address(looks));
        bytes memory refusal =
            abi.encodeWithSelector(Refusals.NotAllowed.selector, address(juries), address(looks));
        vm.expectRevert(refusal);
        board.askJury(task, 0, 7, 0);
        vm.expectRevert(refusal);
        board.endJury(task, true);
        vm.expectRevert(refusal);
        market.withheld(task, anyone);
        vm.expectRevert(refusal);
        board.forfeit(task, FIRST, anyone);
        vm.stopPrank();
        // The juries contract cannot take the lock of a seat or look.
        vm.prank(address(juries));
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAllowed.selector, address(looks), address(juries)));
        board.forfeit(task, FIRST - 1, anyone);
    }

    /// @dev Seat 0 is silent and redrawn until the task has had that many draws.
    function _silentUntil(uint256 draws) private {
        while (_audit().draws < draws) {
            address silent = _account(0);
            _redraw();
            vm.prank(silent);
            board.resume();
            _drawWith(bytes32(uint256(_audit().draws)));
        }
    }

    /// @dev A claim whose jury of six is split in half.
    function _undecided(uint256 seat, uint32 item) private {
        vm.warp(vm.getBlockTimestamp() + 1);
        _claim(seat, item);
        _drawWith(bytes32(vm.getBlockTimestamp()));
        _voteYes(7);
        _voteNo(56);
        _reach(uint256(_audit().until) + MOVE_TIME + 1);
        vm.expectEmit();
        emit IJuries.Judged(task, seat, item, IJuries.Verdict.Undecided, 3, 3);
        _close();
    }

    function _expectNoClaim(uint256 seat, uint32 item, bytes memory refusal) private {
        address account = _account(seat);
        vm.expectRevert(refusal);
        vm.prank(account);
        juries.claim(task, seat, item);
    }

    function _expectNoAttestation() private {
        address account = _account(0);
        vm.expectRevert(abi.encodeWithSelector(Refusals.JuryOpen.selector, task));
        vm.prank(account);
        board.attest(task, 0, "digest", "salt hash");
    }
}
