// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAuditBoard} from "../../src/interfaces/IAuditBoard.sol";
import {IJuries} from "../../src/interfaces/IJuries.sol";
import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {Audit} from "../../src/types/Seats.sol";
import {Claiming} from "./Claiming.sol";

/// @title Verdicts: when, by which majority, and who pays whom. Every amount is from audit.md section 8.
contract VerdictsTest is Claiming {
    uint256 private constant SHARE = uint256(SEAT_FEE) / 7;

    // ------------------------------------------------------------------ available

    /// @dev Four of seven: each gets a seventh of the bond, and the rest burns. The claimant's draw fee goes
    /// to the drawer.
    function test_close_available_paysYes_succeeds() public {
        _voted(3, 15, 48);
        (address claimant, address silent) = (_claimant(), _account(FIRST + 6));
        address[] memory sat = _jurors();
        uint256 stake = _remaining(market.taskOf(task).stake);
        _reach(uint256(_audit().until) + MOVE_TIME + 1);
        vm.expectEmit();
        emit IJuries.Judged(task, 0, 3, IJuries.Verdict.Available, 4, 2);
        _close();
        for (uint256 slot; slot < 7; ++slot) {
            assertEq(_free(sat[slot]), FUNDS - SEAT_STAKE + (slot < 4 ? SHARE : 0));
        }
        assertEq(vault.burned(), SEAT_FEE - 4 * SHARE + PENALTY);
        assertEq(_stakeOf(silent), SEAT_STAKE - PENALTY);
        assertEq(_free(claimant), FUNDS - SEAT_STAKE - BACK);
        assertEq(_remaining(market.taskOf(task).stake), stake);
        assertEq(uint256(market.taskOf(task).status), uint256(ITaskMarket.Status.Submitted));
        assertEq(juries.claimOf(task).account, address(0));
        _assertFreed(sat, 64);
        _assertConserved();
    }

    /// @dev Everyone's attestation period restarts, and so do window and stall period.
    function test_close_available_timeBeginsAgain_succeeds() public {
        _voted(3, 15, 0);
        _reach(uint256(_audit().until) + MOVE_TIME + 1);
        _close();
        uint256 now_ = vm.getBlockTimestamp();
        assertEq(_audit().until, now_ + ATTEST_PERIOD);
        assertEq(market.taskOf(task).challengeUntil, now_ + ATTEST_PERIOD + REST_OF_WINDOW);
        assertEq(board.stallsFrom(task), now_);
        assertEq(_audit().claimant, 0);
        vm.warp(_audit().until);
        _attest(0);
        _attest(1);
        _settle();
        assertEq(_free(solver), FUNDS + PRICE);
        _releaseAll();
        _assertConserved();
    }

    /// @dev The claimant has the full time to object: nobody can close before it is over.
    function test_close_available_early_reverts() public {
        _voted(3, 127, 0);
        uint64 until = _audit().until + MOVE_TIME;
        vm.warp(until);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooEarly.selector, until, until));
        _close();
        vm.warp(until + 1);
        _close();
    }

    /// @dev All four that voted yes open the chunk. Closing is possible after the time to open, which ends
    /// later than the time to object.
    function test_close_opened_available_succeeds() public {
        _voted(CONSTANTS, 15, 16);
        vm.warp(uint256(_audit().until) + MOVE_TIME);
        _object(0, _walk(0, 1));
        _open(15);
        uint64 until = juries.claimOf(task).until;
        assertEq(until, vm.getBlockTimestamp() + MOVE_TIME);
        vm.warp(until);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooEarly.selector, until, until));
        _close();
        vm.warp(until + 1);
        address[] memory sat = _jurors();
        vm.expectEmit();
        emit IJuries.Judged(task, 0, CONSTANTS, IJuries.Verdict.Available, 4, 1);
        _close();
        for (uint256 slot; slot < 4; ++slot) {
            assertEq(_free(sat[slot]), FUNDS - SEAT_STAKE + SHARE);
        }
        _assertFreed(sat, 96);
        _assertConserved();
    }

    /// @dev Five voted yes and one has not opened: its lock burns, and it gets no share. Four are enough.
    function test_close_oneUnopened_available_succeeds() public {
        _objected(3, 31, 96, 0, 1);
        _open(30);
        (address claimant, address liar) = (_claimant(), _account(FIRST));
        address[] memory sat = _jurors();
        _reach(uint256(juries.claimOf(task).until) + 1);
        vm.expectEmit();
        emit IJuries.Unopened(task, FIRST, liar);
        vm.expectEmit();
        emit IJuries.Judged(task, 0, 3, IJuries.Verdict.Available, 4, 2);
        _close();
        // The claimant that objected gains nothing.
        assertEq(_free(claimant), FUNDS - SEAT_STAKE - BACK);
        assertEq(_free(liar), FUNDS - SEAT_STAKE);
        assertEq(_stakeOf(liar), SEAT_STAKE - LOCK);
        assertEq(vault.burned(), LOCK + SEAT_FEE - 4 * SHARE);
        for (uint256 slot = 1; slot < 5; ++slot) {
            assertEq(_free(sat[slot]), FUNDS - SEAT_STAKE + SHARE);
        }
        _assertFreed(sat, 1);
        _assertConserved();
    }

    // ------------------------------------------------------------------ withheld

    /// @dev Four of seven vote no: the stake pays the claimant back; with what burns, a sixteenth of it is
    /// taken.
    function test_close_withheld_succeeds() public {
        _voted(3, 3, 60);
        (address claimant, address silent) = (_claimant(), _account(FIRST + 6));
        address[] memory sat = _jurors();
        uint64 until = uint64(vm.getBlockTimestamp()) + 2 * (1000 + TIME);
        Audit memory before = _audit();
        vm.expectEmit();
        emit ITaskMarket.Stalled(task, until);
        vm.expectEmit();
        emit IJuries.Judged(task, 0, 3, IJuries.Verdict.Withheld, 2, 4);
        _close();
        for (uint256 slot; slot < 7; ++slot) {
            assertEq(_free(sat[slot]), FUNDS - SEAT_STAKE + (slot > 1 && slot < 6 ? SHARE : 0));
        }
        assertEq(_stakeOf(silent), SEAT_STAKE - PENALTY);
        // Exactly the bond and the draw fee are returned.
        assertEq(_free(claimant), FUNDS - SEAT_STAKE);
        assertEq(_remaining(market.taskOf(task).stake), STAKE - STAKE / 16);
        assertEq(vault.burned(), SEAT_FEE - 4 * SHARE + PENALTY + STAKE / 16 - BACK);
        assertEq(uint256(market.taskOf(task).status), uint256(ITaskMarket.Status.Unpaid));
        assertEq(market.taskOf(task).challengeUntil, until);
        // Only the jury part of the audit is over: no period restarts.
        before.claimant = 0;
        assertEq(abi.encode(_audit()), abi.encode(before));
        assertEq(juries.claimOf(task).account, address(0));
        _assertFreed(sat, 64);
        _assertConserved();
    }

    // ------------------------------------------------------------------ undecided

    /// @dev Silence counts for neither side: all six voters get their shares, the stake is untouched, and
    /// everyone's period restarts.
    function test_close_silence_undecided_succeeds() public {
        _voted(3, 7, 56);
        address claimant = _claimant();
        address[] memory sat = _jurors();
        _reach(uint256(_audit().until) + MOVE_TIME + 1);
        vm.expectEmit();
        emit IJuries.Judged(task, 0, 3, IJuries.Verdict.Undecided, 3, 3);
        _close();
        for (uint256 slot; slot < 7; ++slot) {
            assertEq(_free(sat[slot]), FUNDS - SEAT_STAKE + (slot < 6 ? SHARE : 0));
        }
        assertEq(_stakeOf(sat[6]), SEAT_STAKE - PENALTY);
        assertEq(_free(claimant), FUNDS - SEAT_STAKE - BACK);
        assertEq(vault.burned(), SEAT_FEE - 6 * SHARE + PENALTY);
        _assertFreed(sat, 64);
        _assertGoesOn();
    }

    /// @dev Nobody votes: the whole bond burns, and seven accounts are penalised like silent seats.
    function test_close_allSilent_undecided_succeeds() public {
        _voted(3, 0, 0);
        address[] memory sat = _jurors();
        vm.expectEmit();
        emit IAuditBoard.Silent(task, FIRST, sat[0], PENALTY);
        vm.expectEmit();
        emit IJuries.Judged(task, 0, 3, IJuries.Verdict.Undecided, 0, 0);
        _close();
        assertEq(vault.burned(), SEAT_FEE + 7 * PENALTY);
        _assertFreed(sat, 127);
        _assertGoesOn();
    }

    /// @dev Empty slots count like silence: two of seven slots are filled, and vote no.
    function test_close_emptySlots_undecided_succeeds() public {
        _start();
        for (uint256 k; k < accounts.length - 1; ++k) {
            bool seated = accounts[k] == _account(0) || accounts[k] == _account(1);
            if (seated || board.registered() == 4) continue;
            vm.prank(accounts[k]);
            board.resign();
        }
        vm.warp(vm.getBlockTimestamp() + 1);
        _claim(0, 3);
        _drawWith(0);
        address[] memory sat = new address[](2);
        uint256 filled;
        for (uint256 slot; slot < 7; ++slot) {
            if (_account(FIRST + slot) == address(0)) continue;
            sat[filled++] = _account(FIRST + slot);
            _voteNo(1 << slot);
        }
        assertEq(filled, 2);
        _reach(uint256(_audit().until) + 1);
        _close();
        assertEq(_free(sat[0]), FUNDS - SEAT_STAKE + SHARE);
        assertEq(_free(sat[1]), FUNDS - SEAT_STAKE + SHARE);
        assertEq(vault.burned(), SEAT_FEE - 2 * SHARE);
        _assertGoesOn();
    }

    /// @dev Four voted yes and one of them has not opened: the majority is lost. The three remaining yes and
    /// two no are paid.
    function test_close_unopened_undecided_succeeds() public {
        _objected(3, 15, 48, 0, 1);
        _open(7);
        (address claimant, address liar) = (_claimant(), _account(FIRST + 3));
        address[] memory sat = _jurors();
        _reach(uint256(juries.claimOf(task).until) + 1);
        vm.expectEmit();
        emit IJuries.Judged(task, 0, 3, IJuries.Verdict.Undecided, 3, 2);
        _close();
        assertEq(_free(claimant), FUNDS - SEAT_STAKE - BACK);
        assertEq(_stakeOf(liar), SEAT_STAKE - LOCK);
        assertEq(vault.burned(), LOCK + SEAT_FEE - 5 * SHARE + PENALTY);
        for (uint256 slot; slot < 7; ++slot) {
            assertEq(_free(sat[slot]), FUNDS - SEAT_STAKE + (slot == 3 || slot == 6 ? 0 : SHARE));
        }
        _assertFreed(sat, 72);
        _assertGoesOn();
    }

    /// @dev Three vote yes; one of them only has arbitrary bytes. There is no majority, but that juror is not
    /// paid.
    function test_close_falseYes_undecided_succeeds() public {
        _seated(3);
        _voteYes(3);
        address liar = _account(FIRST + 2);
        vm.prank(liar);
        board.attest(task, FIRST + 2, "digest", "salt hash");
        _voteNo(56);
        _reach(uint256(_audit().until) + 1);
        _object(0, _walk(0, 1));
        _open(3);
        address[] memory sat = _jurors();
        _reach(uint256(juries.claimOf(task).until) + 1);
        vm.expectEmit();
        emit IJuries.Unopened(task, FIRST + 2, liar);
        vm.expectEmit();
        emit IJuries.Judged(task, 0, 3, IJuries.Verdict.Undecided, 2, 3);
        _close();
        assertEq(_stakeOf(liar), SEAT_STAKE - LOCK);
        for (uint256 slot; slot < 7; ++slot) {
            assertEq(_free(sat[slot]), FUNDS - SEAT_STAKE + (slot == 2 || slot == 6 ? 0 : SHARE));
        }
        assertEq(vault.burned(), LOCK + SEAT_FEE - 5 * SHARE + PENALTY);
        _assertFreed(sat, 68);
        _assertGoesOn();
    }

    /// @dev Whenever a yes may be objected to, the claimant has its time to object.
    function test_close_undecided_early_reverts() public {
        _voted(3, 1, 56);
        uint64 until = _audit().until + MOVE_TIME;
        vm.warp(until);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooEarly.selector, until, until));
        _close();
        vm.warp(until + 1);
        _close();
    }

    /// @dev Half of an even jury is not a majority, neither for yes nor for no.
    function test_close_halfOfTheJury_undecided_succeeds() public {
        jurors = 6;
        _voted(3, 7, 56);
        _reach(uint256(_audit().until) + MOVE_TIME + 1);
        _close();
        assertEq(vault.burned(), SEAT_FEE - 6 * (uint256(SEAT_FEE) / 6));
        _assertGoesOn();
    }

    /// @dev A second jury decides what the first could not, for the same claimant and item.
    function test_close_undecided_thenWithheld_succeeds() public {
        _voted(3, 7, 56);
        _reach(uint256(_audit().until) + MOVE_TIME + 1);
        _close();
        vm.warp(_audit().until);
        _claim(0, 3);
        _drawWith(bytes32(uint256(1)));
        _voteNo(127);
        _reach(uint256(_audit().until) + 1);
        address claimant = _claimant();
        vm.expectEmit();
        emit IJuries.Judged(task, 0, 3, IJuries.Verdict.Withheld, 0, 7);
        _close();
        // The stake pays for the claim that was right, not for the earlier one.
        assertEq(_free(claimant), FUNDS - SEAT_STAKE - BACK);
        assertEq(_remaining(market.taskOf(task).stake), STAKE - STAKE / 16);
        _assertConserved();
    }

    // ------------------------------------------------------------------ closing

    /// @dev If a majority voted no, only the voting period has to pass.
    function test_close_withheld_early_reverts() public {
        _seated(3);
        _voteNo(127);
        uint64 until = _audit().until;
        vm.warp(until);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooEarly.selector, until, until));
        _close();
        vm.warp(until + 1);
        _close();
        vm.expectRevert(
            abi.encodeWithSelector(Refusals.WrongStatus.selector, task, ITaskMarket.Status.Unpaid)
        );
        _close();
    }

    function test_close_refused_reverts() public {
        _start();
        vm.expectRevert(abi.encodeWithSelector(Refusals.NoClaim.selector, task));
        _close();
        _claim(0, 1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.DrawPending.selector, task));
        _close();
    }

    /// @dev The task's next jury is separate: it has its own votes, digests and openings.
    function test_close_secondJury_succeeds() public {
        _objected(3, 127, 0, 0, 1);
        _open(127);
        _reach(uint256(juries.claimOf(task).until) + 1);
        _close();
        // An account freed in the same second as a draw was requested is not in that draw.
        vm.warp(vm.getBlockTimestamp() + 1);
        _claim(1, 4);
        (uint256 claimant, bool pending,, uint256 yes, uint256 no) = board.juryOf(task);
        assertEq(claimant, 2);
        assertTrue(pending);
        assertEq(yes + no, 0);
        assertEq(juries.claimOf(task).opened, 0);
        _drawWith(bytes32(uint256(1)));
        assertEq(board.attestationOf(task, FIRST), 0);
        _voteNo(127);
        _reach(uint256(_audit().until) + 1);
        _close();
        assertEq(_remaining(market.taskOf(task).stake), STAKE - STAKE / 16);
        _assertConserved();
    }

    // ------------------------------------------------------------------ after a verdict

    /// @dev Nobody trains again: the budget and the rest of the stake are returned, and attested seats get
    /// their fees.
    function test_closeStalled_withheld_succeeds() public {
        _start();
        _attest(1);
        _claim(0, 3);
        _drawWith(0);
        _voteNo(127);
        _reach(uint256(_audit().until) + 1);
        _close();
        address seated = _account(1);
        _reach(uint256(market.taskOf(task).challengeUntil) + 1);
        market.closeStalled(task);
        assertEq(uint256(market.taskOf(task).status), uint256(ITaskMarket.Status.Void));
        assertEq(_free(solver), FUNDS - STAKE / 16);
        assertEq(_free(submitter), FUNDS - 2 * SEAT_FEE - DRAW_FEE);
        assertEq(_free(seated), FUNDS - SEAT_STAKE + 2 * SEAT_FEE);
        assertEq(_escrow(), 0);
        _releaseAll();
        _assertConserved();
    }

    /// @dev A party that trains again and convicts gets its reward, although the jury took a sixteenth.
    function test_convict_withheld_succeeds() public {
        _voted(3, 0, 127);
        _close();
        _convict();
        assertEq(_free(second), FUNDS + RETRAIN_REWARD);
        assertEq(_free(submitter), FUNDS + RESTITUTION - DRAW_FEE);
        assertEq(_remaining(market.taskOf(task).stake), STAKE - STAKE / 16 - RETRAIN_REWARD - RESTITUTION);
        _releaseAll();
        _assertConserved();
    }

    // ------------------------------------------------------------------ looks

    /// @dev A look that cannot fetch what it repeats makes a claim; the awaited looks stay awaited.
    function test_close_look_available_succeeds() public {
        chance = 5_000;
        _looked(3);
        _claim(33, 2);
        _drawWith(0);
        _attest(32);
        assertEq(_audit().looking, 2);
        assertEq(_audit().level, 1);
        _voteYes(127);
        _reach(uint256(_audit().until) + MOVE_TIME + 1);
        vm.expectRevert(
            abi.encodeWithSelector(Refusals.TooEarly.selector, type(uint64).max, vm.getBlockTimestamp())
        );
        market.settle(task);
        _close();
        assertEq(_audit().looked, 1);
        _attest(33);
        assertEq(board.firstDraw().level, 2);
        assertEq(_candidateSlots(2), 3);
        _drawPicks(0);
        _settle();
        _releaseAll();
        _assertConserved();
    }

    function test_close_look_withheld_succeeds() public {
        chance = 5_000;
        _looked(3);
        address looker = _account(33);
        _claim(33, 2);
        _drawWith(0);
        _voteNo(127);
        _reach(uint256(_audit().until) + 1);
        _close();
        assertEq(_free(looker), FUNDS - SEAT_STAKE);
        _reach(uint256(market.taskOf(task).challengeUntil) + 1);
        address seated = _account(0);
        market.closeStalled(task);
        assertEq(_free(seated), FUNDS - SEAT_STAKE + 2 * SEAT_FEE);
        assertEq(_free(solver), FUNDS - STAKE / 16);
        _releaseAll();
        _assertConserved();
    }

    // ------------------------------------------------------------------ inside

    /// @dev The jury has ended nothing: window and stall period count from the verdict, and the claimant may
    /// attest.
    function _assertGoesOn() private {
        uint256 now_ = vm.getBlockTimestamp();
        assertEq(uint256(market.taskOf(task).status), uint256(ITaskMarket.Status.Submitted));
        assertEq(juries.claimOf(task).account, address(0));
        assertEq(_audit().claimant, 0);
        assertEq(_audit().until, now_ + ATTEST_PERIOD);
        assertEq(market.taskOf(task).challengeUntil, now_ + ATTEST_PERIOD + REST_OF_WINDOW);
        assertEq(board.stallsFrom(task), now_);
        assertEq(_remaining(market.taskOf(task).stake), STAKE);
        _assertConserved();
        vm.warp(_audit().until);
        _attest(0);
        _attest(1);
        _settle();
        assertEq(_free(solver), FUNDS + PRICE);
        _releaseAll();
        _assertConserved();
    }

    function _jurors() private view returns (address[] memory sat) {
        sat = new address[](jurors);
        for (uint256 slot; slot < jurors; ++slot) {
            sat[slot] = _account(FIRST + slot);
        }
    }

    /// @dev The seats of the jury are empty; the accounts in the bit set `suspended` are suspended, all
    /// others are free from now.
    function _assertFreed(address[] memory sat, uint256 suspended) private {
        for (uint256 slot; slot < sat.length; ++slot) {
            assertEq(_account(FIRST + slot), address(0));
            assertEq(board.attestationOf(task, FIRST + slot), 0);
            bool is_ = suspended >> slot & 1 == 1;
            assertEq(board.registrationOf(sat[slot]).suspended, is_);
            uint256 since = is_ ? type(uint40).max : vm.getBlockTimestamp();
            assertEq(board.registrationOf(sat[slot]).freeSince, since);
            if (market.taskOf(task).status == ITaskMarket.Status.Submitted) continue;
            vm.expectRevert(abi.encodeWithSelector(Refusals.NothingToRelease.selector, task, FIRST + slot));
            board.release(task, FIRST + slot);
        }
    }
}
