// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAuditBoard} from "../../src/interfaces/IAuditBoard.sol";
import {IJuries} from "../../src/interfaces/IJuries.sol";
import {ILooks} from "../../src/interfaces/ILooks.sol";
import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {TaskId} from "../../src/types/Ids.sol";
import {Audit, Registration, Seat} from "../../src/types/Seats.sol";
import {Terms} from "../../src/types/Terms.sol";
import {IVault} from "../harness/Production.sol";
import {Ending} from "./Ending.sol";
import {Test} from "forge-std/Test.sol";

/// @title Invariants of looks, juries and honest accounts. `MarketInvariants` checks them together with its
/// own.
abstract contract LooksInvariants is Test {
    uint256 private constant FIRST_JUROR = 160;
    /// @dev Number of accounts that are honest in everything: the first that registered. In `people` they
    /// come after five accounts that did not register.
    uint256 private constant HONEST = 3;
    uint256 private constant FIRST_HONEST = 5;

    Ending internal handler;
    IVault internal vault;
    ITaskMarket internal market;
    IAuditBoard internal board;
    ILooks internal looks;
    IJuries internal juries;
    uint256[HONEST] private _owned;

    function _watch(Ending handler_) internal {
        handler = handler_;
        handler.setUp();
        (vault, market, board, looks, juries) = handler.contracts();
        for (uint256 i; i < HONEST; ++i) {
            _owned[i] = _wealth(handler.people(FIRST_HONEST + i));
        }
    }

    /// @dev A task's number of accusations is that of the open ones, and each holds its bond. A claim holds
    /// its bond too, and the board knows its claimant while a jury can judge it.
    function invariant_countsAreOfWhatIsOpen() internal view {
        for (uint256 k = 1; k <= market.tasks(); ++k) {
            TaskId task = TaskId.wrap(k);
            Terms memory terms = market.termsOf(task);
            (uint256[] memory numbers,) = board.looksOf(task);
            uint256 open;
            for (uint256 i; i < numbers.length; ++i) {
                ILooks.Look memory entry = looks.lookOf(task, numbers[i]);
                if (entry.lock != 0) {
                    assertEq(_remaining(entry.lock), entry.accused == 0 ? 0 : terms.gameCost);
                }
                if (entry.accused == 0) continue;
                ++open;
                assertTrue(entry.revealed != 0);
                assertLe(entry.until, looks.answersUntil(task));
            }
            assertEq(looks.openAccusations(task), open);
            if (open != 0) assertNotEq(uint8(market.statusOf(task)), uint8(ITaskMarket.Status.Settled));
            _claimIsKept(task, terms);
        }
    }

    /// @dev A juror's digest is stored exactly if it voted yes, and the board counts only votes of seated
    /// jurors.
    function invariant_jurorsVotesAreTheirs() internal view {
        for (uint256 k = 1; k <= market.tasks(); ++k) {
            TaskId task = TaskId.wrap(k);
            (,,, uint256 yes, uint256 no) = board.juryOf(task);
            Seat[] memory jurors = _jurors(task);
            uint256 voted;
            for (uint256 i; i < jurors.length; ++i) {
                if (jurors[i].attested) voted |= 1 << i;
                assertEq(yes >> i & 1 == 1, board.attestationOf(task, FIRST_JUROR + i) != 0);
            }
            assertEq(yes | no, voted);
            assertEq(yes & no, 0);
        }
    }

    /// @dev An account that replays, opens, answers and votes in time is never suspended and never has less
    /// than it started with.
    function invariant_honestVerifiersLoseNothing() internal view {
        for (uint256 i; i < HONEST; ++i) {
            address account = handler.people(FIRST_HONEST + i);
            assertTrue(handler.honest(account));
            assertFalse(board.registrationOf(account).suspended);
            assertGe(_wealth(account), _owned[i]);
        }
    }

    /// @dev Every task is over, and only locks of registrations hold anything.
    function invariant_everyTaskEndsAndFreesItsLocks() internal view {
        for (uint256 k = 1; k <= market.tasks(); ++k) {
            assertNotEq(uint8(handler.ended(TaskId.wrap(k))), uint8(ITaskMarket.Status.None));
            assertEq(looks.openAccusations(TaskId.wrap(k)), 0);
            assertEq(juries.claimOf(TaskId.wrap(k)).account, address(0));
        }
        uint256 locked;
        for (uint256 lock = 1; lock <= vault.locks(); ++lock) {
            locked += _remaining(lock);
        }
        uint256 stakes;
        address[] memory accounts = handler.everybody();
        for (uint256 i; i < accounts.length; ++i) {
            Registration memory entry = board.registrationOf(accounts[i]);
            if (entry.account == address(0)) continue;
            stakes += _remaining(entry.lock);
            // Nothing binds it any more.
            assertEq(entry.freeSince == type(uint40).max, entry.suspended);
        }
        assertEq(locked, stakes);
    }

    // ------------------------------------------------------------------ inside

    function _claimIsKept(TaskId task, Terms memory terms) private view {
        IJuries.Claim memory claim = juries.claimOf(task);
        Audit memory audit = board.auditOf(task);
        bool submitted = market.statusOf(task) == ITaskMarket.Status.Submitted;
        if (claim.account != address(0)) {
            if (terms.auditFee != 0) assertEq(_remaining(claim.bond), terms.auditFee);
            if (submitted && audit.claimant == 0) assertGt(handler.done("lapse of a jury"), 0);
        }
        if (!submitted || audit.claimant == 0) return;
        assertEq(audit.claimant, uint256(claim.seat) + 1);
        assertEq(board.seatOf(task, claim.seat).account, claim.account);
        assertFalse(board.seatOf(task, claim.seat).attested);
    }

    function _jurors(TaskId task) internal view returns (Seat[] memory jurors) {
        jurors = new Seat[](market.termsOf(task).jurors);
        for (uint256 i; i < jurors.length; ++i) {
            jurors[i] = board.seatOf(task, FIRST_JUROR + i);
        }
    }

    /// @dev The account's free balance plus its stake.
    function _wealth(address account) private view returns (uint256) {
        return vault.free(account) + _remaining(board.registrationOf(account).lock);
    }

    function _remaining(uint256 lock) internal view returns (uint256 remaining) {
        if (lock != 0) (,, remaining) = vault.lockOf(lock);
    }
}
