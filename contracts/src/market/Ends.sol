// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAuditBoard} from "../interfaces/IAuditBoard.sol";
import {ICommitments} from "../interfaces/ICommitments.sol";
import {ILooks} from "../interfaces/ILooks.sol";
import {ITaskMarket} from "../interfaces/ITaskMarket.sol";
import {Fees} from "../libraries/Fees.sol";
import {Refusals} from "../libraries/Refusals.sol";
import {TaskId} from "../types/Ids.sol";
import {Seat} from "../types/Seats.sol";
import {Terms} from "../types/Terms.sol";
import {MarketState} from "./MarketState.sol";

/// @title How a task ends after its bidding: the functions that anyone can call to end it, and `stall`,
/// which prepares such an end. See dispute.md section 2, audit.md section 8.
abstract contract Ends is MarketState {
    /// @notice The audit board, which may call `drawAsked`, `drawn` and `payLook`.
    IAuditBoard public board;
    /// @notice The commitments, which may call `compensate`.
    ICommitments public commitments;

    /// @inheritdoc ITaskMarket
    function expire(TaskId task) external {
        Task storage entry = _at(task, Status.Training);
        if (block.timestamp <= entry.trainUntil) revert Refusals.TooEarly(entry.trainUntil, block.timestamp);
        entry.status = Status.Refunded;
        uint256 penalty = _terms[task].delayPenalty;
        uint256 lock = entry.stake;
        VAULT.pay(lock, entry.submitter, penalty / 2);
        VAULT.burn(lock, type(uint256).max);
        emit Refunded(task, _releaseAll(entry.escrow), penalty);
    }

    /// @inheritdoc ITaskMarket
    function settle(TaskId task) external {
        Task storage entry = _over(task, Status.Submitted);
        entry.status = Status.Settled;
        Seat[] memory seats = board.seatsOf(task);
        board.requireAudited(task, _terms[task].verifiers);
        _paySeats(task, entry, seats);
        uint256 paid = VAULT.pay(entry.escrow, entry.bidder, entry.price);
        _releaseAll(entry.escrow);
        _releaseAll(entry.stake);
        emit Settled(task, entry.bidder, paid);
    }

    /// @inheritdoc ITaskMarket
    function voidTask(TaskId task) external {
        Task storage entry = _over(task, Status.Submitted);
        Seat[] memory seats = board.seatsOf(task);
        board.requireVoidable(task);
        _void(task, entry, seats, 0);
    }

    /// @inheritdoc ITaskMarket
    function stall(TaskId task) external {
        Task storage entry = _at(task, Status.Submitted);
        uint64 until = board.stallsFrom(task) + _parameters.stallPeriod;
        if (block.timestamp <= until) revert Refusals.TooEarly(until, block.timestamp);
        _unpaid(task, entry);
    }

    /// @inheritdoc ITaskMarket
    function closeStalled(TaskId task) external {
        Task storage entry = _over(task, Status.Unpaid);
        // Without a draw nobody could audit the task, and nobody is to blame.
        Seat[] memory seats = board.seatsOf(task);
        _void(task, entry, seats, seats.length == 0 ? entry.price / 2 : 0);
    }

    /// @inheritdoc ITaskMarket
    function burnRest(TaskId task) external {
        Task storage entry = _at(task, Status.Slashed);
        uint64 until = commitments.claimsUntil(task);
        if (block.timestamp <= until) revert Refusals.TooEarly(until, block.timestamp);
        emit RestBurned(task, VAULT.burn(entry.stake, type(uint256).max));
    }

    // ------------------------------------------------------------------ inside

    /// @dev The task in this status; reverts unless its window is over, which answers to accusations may
    /// prolong (`_requireInWindow`), and no game is open.
    function _over(TaskId task, Status status) private view returns (Task storage entry) {
        entry = _at(task, status);
        uint64 until = entry.challengeUntil;
        uint64 answers = ILooks(looks).answersUntil(task);
        if (answers > until) until = answers;
        if (block.timestamp <= until) revert Refusals.TooEarly(until, block.timestamp);
        if (entry.openGames != 0) revert Refusals.GamesOpen(task, entry.openGames);
    }

    /// @dev Makes the task Unpaid: it will not be paid as its terms say, and can still be challenged.
    function _unpaid(TaskId task, Task storage entry) internal {
        Terms storage terms = _terms[task];
        entry.status = Status.Unpaid;
        // Enough time to train again from the first state, and then for a game.
        uint64 until = uint64(block.timestamp) + 2 * uint64(terms.trainingPeriod) + 2 * uint64(_clock(terms));
        entry.challengeUntil = until;
        emit Stalled(task, until);
    }

    /// @dev Ends a task that was not fully audited.
    function _void(TaskId task, Task storage entry, Seat[] memory seats, uint256 toSolver) private {
        entry.status = Status.Void;
        _paySeats(task, entry, seats);
        uint256 paid = toSolver == 0 ? 0 : VAULT.pay(entry.escrow, entry.bidder, toSolver);
        _releaseAll(entry.stake);
        emit Voided(task, VAULT.releaseBut(entry.escrow, _owed(entry)), paid);
    }

    /// @dev Pays each attested seat its fee, unless it has lost its lock.
    function _paySeats(TaskId task, Task storage entry, Seat[] memory seats) private {
        Terms storage terms = _terms[task];
        uint256 fee = Fees.ofSeat(terms.auditFee, terms.segmentsPerVerifier);
        uint256 escrow = entry.escrow;
        for (uint256 i; i < seats.length; ++i) {
            if (seats[i].attested && !seats[i].caught) VAULT.pay(escrow, seats[i].account, fee);
        }
    }
}
