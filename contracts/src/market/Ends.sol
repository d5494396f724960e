// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAuditBoard} from "../interfaces/IAuditBoard.sol";
import {IBeacon} from "../interfaces/IBeacon.sol";
import {ICommitments} from "../interfaces/ICommitments.sol";
import {ITaskMarket} from "../interfaces/ITaskMarket.sol";
import {Errors} from "../libraries/Errors.sol";
import {Fees} from "../libraries/Fees.sol";
import {TaskId} from "../types/Ids.sol";
import {Audit, Seat} from "../types/Seats.sol";
import {Terms} from "../types/Terms.sol";
import {MarketState} from "./MarketState.sol";

/// @title The ends of a task that anyone may bring about: dispute.md sections 2 and 8.
abstract contract Ends is MarketState {
    IBeacon internal immutable BEACON;

    /// @notice The audit board, whose calls `drawAsked` and `drawn` take.
    IAuditBoard public board;
    /// @notice The commitments, whose call `compensate` takes.
    ICommitments public commitments;

    constructor(IBeacon beacon) {
        BEACON = beacon;
    }

    /// @inheritdoc ITaskMarket
    function expire(TaskId task) external {
        Task storage entry = _at(task, Status.Training);
        if (block.timestamp <= entry.trainUntil) revert Errors.TooEarly(entry.trainUntil, block.timestamp);
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
        for (uint256 i; i < seats.length; ++i) {
            if (!seats[i].attested) revert Errors.NotAttested(task, i);
        }
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
        bool empty;
        for (uint256 i; i < seats.length; ++i) {
            if (seats[i].account == address(0)) empty = true;
        }
        Audit memory audit = board.auditOf(task);
        // A seat that an informer emptied can be drawn again: nobody ends a task by emptying his own.
        bool last = audit.escrowDraws == Fees.ESCROW_DRAWS && audit.purse == 0;
        if (!empty || !last) revert Errors.NotVoidable(task);
        _void(task, entry, seats, 0);
    }

    /// @inheritdoc ITaskMarket
    function stall(TaskId task) external {
        Task storage entry = _at(task, Status.Submitted);
        Terms storage terms = _terms[task];
        Audit memory audit = board.auditOf(task);
        if (audit.attested == terms.verifiers) revert Errors.NotStalled(task);
        uint256 since = audit.drawnAt == 0 ? BEACON.timeOf(audit.round) : audit.drawnAt;
        // Else who empties his own seat so late would leave no time to draw it again.
        if (since < audit.informedAt) since = audit.informedAt;
        uint64 until = uint64(since) + _parameters.stallPeriod;
        if (block.timestamp <= until) revert Errors.TooEarly(until, block.timestamp);
        entry.status = Status.Unpaid;
        // Time to train again from the first state, and for a game that is opened after that.
        entry.challengeUntil =
            uint64(block.timestamp) + 2 * uint64(terms.trainingPeriod) + 2 * uint64(_clock(terms));
        emit Stalled(task, entry.challengeUntil);
    }

    /// @inheritdoc ITaskMarket
    function closeStalled(TaskId task) external {
        Task storage entry = _over(task, Status.Unpaid);
        // Without a draw nobody could look, and nobody is to blame.
        bool undrawn = board.auditOf(task).drawnAt == 0;
        _void(task, entry, board.seatsOf(task), undrawn ? entry.price / 2 : 0);
    }

    /// @inheritdoc ITaskMarket
    function burnRest(TaskId task) external {
        Task storage entry = _at(task, Status.Slashed);
        uint64 until = commitments.claimsUntil(task);
        if (block.timestamp <= until) revert Errors.TooEarly(until, block.timestamp);
        emit RestBurned(task, VAULT.burn(entry.stake, type(uint256).max));
    }

    // ------------------------------------------------------------------ inside

    /// @dev The task, in this status, if its window is over and no game is open.
    function _over(TaskId task, Status status) private view returns (Task storage entry) {
        entry = _at(task, status);
        uint64 until = entry.challengeUntil;
        if (block.timestamp <= until) revert Errors.TooEarly(until, block.timestamp);
        if (entry.openGames != 0) revert Errors.GamesOpen(task, entry.openGames);
    }

    /// @dev Ends a task that was not audited.
    function _void(TaskId task, Task storage entry, Seat[] memory seats, uint256 toSolver) private {
        entry.status = Status.Void;
        _paySeats(task, entry, seats);
        uint256 paid = toSolver == 0 ? 0 : VAULT.pay(entry.escrow, entry.bidder, toSolver);
        _releaseAll(entry.stake);
        emit Voided(task, VAULT.releaseBut(entry.escrow, _owed(entry)), paid);
    }

    /// @dev Each attested seat has its fee.
    function _paySeats(TaskId task, Task storage entry, Seat[] memory seats) private {
        Terms storage terms = _terms[task];
        uint256 fee = Fees.ofSeat(terms.auditFee, terms.segmentsPerVerifier);
        uint256 escrow = entry.escrow;
        for (uint256 i; i < seats.length; ++i) {
            if (seats[i].attested) VAULT.pay(escrow, seats[i].account, fee);
        }
    }
}
