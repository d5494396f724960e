// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ILooks} from "../interfaces/ILooks.sol";
import {IStakeVault} from "../interfaces/IStakeVault.sol";
import {ITaskMarket} from "../interfaces/ITaskMarket.sol";
import {Cells} from "../libraries/Cells.sol";
import {Fees} from "../libraries/Fees.sol";
import {Refusals} from "../libraries/Refusals.sol";
import {TaskId} from "../types/Ids.sol";
import {Parameters} from "../types/Parameters.sol";
import {Terms} from "../types/Terms.sol";

/// @title The market's storage of tasks, and its views.
abstract contract MarketState is ITaskMarket {
    IStakeVault internal immutable VAULT;
    uint128 internal immutable DRAW_FEE;

    Parameters internal _parameters;
    /// @dev Numbered from 1.
    mapping(TaskId task => Task) internal _tasks;
    uint256 internal _newest;
    /// @inheritdoc ITaskMarket
    address public looks;
    mapping(TaskId task => Terms) internal _terms;
    /// @inheritdoc ITaskMarket
    address public juries;

    constructor(IStakeVault vault, Parameters memory parameters_) {
        (VAULT, DRAW_FEE) = (vault, parameters_.drawFee);
        _parameters = parameters_;
    }

    // ------------------------------------------------------------------ views

    /// @inheritdoc ITaskMarket
    function taskOf(TaskId task) external view returns (Task memory) {
        return _existing(task);
    }

    /// @inheritdoc ITaskMarket
    function statusOf(TaskId task) external view returns (Status) {
        return _tasks[task].status;
    }

    /// @inheritdoc ITaskMarket
    function termsOf(TaskId task) external view returns (Terms memory) {
        _existing(task);
        return _terms[task];
    }

    /// @inheritdoc ITaskMarket
    function seatTermsOf(TaskId task) external view returns (SeatTerms memory asked) {
        Task storage entry = _existing(task);
        Terms storage terms = _terms[task];
        uint256 segments = terms.segmentsPerVerifier;
        (asked.status, asked.root) = (entry.status, entry.root);
        (asked.verifiers, asked.attestPeriod) = (terms.verifiers, terms.attestPeriod);
        asked.operations = segments * terms.segmentSteps * terms.stepOperations;
        (asked.stateBytes, asked.lock) = (terms.stateBytes, terms.seatLock);
        asked.fee = Fees.ofSeat(terms.auditFee, segments);
        bool looked = terms.lookChance != 0;
        asked.leastFee = looked ? terms.auditFee : asked.fee;
        asked.period = terms.challengePeriod + (looked ? Cells.LOOK_LEVELS * terms.attestPeriod : 0);
        asked.segments = terms.segments;
        (asked.segmentSteps, asked.stateTensors) = (terms.segmentSteps, terms.stateTensors);
        (asked.segmentsPerVerifier, asked.thinning) = (uint16(segments), terms.thinning);
        (asked.moveTime, asked.lookChance) = (terms.moveTime, terms.lookChance);
        (asked.gameCost, asked.jurors) = (terms.gameCost, terms.jurors);
    }

    /// @inheritdoc ITaskMarket
    function bondOf(TaskId task) external view returns (uint128 bond, bool doubles) {
        Task storage entry = _existing(task);
        _requireInWindow(task, entry);
        return (_terms[task].bond, entry.status == Status.Submitted);
    }

    /// @inheritdoc ITaskMarket
    function solverOf(TaskId task) external view returns (address) {
        return _tasks[task].status == Status.Bidding ? address(0) : _tasks[task].bidder;
    }

    /// @inheritdoc ITaskMarket
    function programOf(TaskId task) external view returns (bytes32) {
        return _terms[task].programId;
    }

    /// @inheritdoc ITaskMarket
    function constantsOf(TaskId task) external view returns (bytes32 root, uint32 size) {
        return (_terms[task].constantsRoot, _terms[task].constants);
    }

    /// @inheritdoc ITaskMarket
    function parameters() external view returns (Parameters memory) {
        return _parameters;
    }

    /// @inheritdoc ITaskMarket
    function tasks() external view returns (uint256) {
        return _newest;
    }

    // ------------------------------------------------------------------ inside

    /// @dev The task; reverts if no task with this id was posted.
    function _existing(TaskId task) internal view returns (Task storage entry) {
        entry = _tasks[task];
        if (entry.status == Status.None) revert Refusals.UnknownTask(task);
    }

    function _at(TaskId task, Status status) internal view returns (Task storage entry) {
        entry = _existing(task);
        if (entry.status != status) revert Refusals.WrongStatus(task, entry.status);
    }

    function _requireChallengeable(TaskId task, Task storage entry) internal view {
        if (entry.status != Status.Submitted && entry.status != Status.Unpaid) {
            revert Refusals.WrongStatus(task, entry.status);
        }
    }

    function _requireInWindow(TaskId task, Task storage entry) internal view {
        _requireChallengeable(task, entry);
        uint64 until = entry.challengeUntil;
        if (block.timestamp <= until) return;
        // An account that was accused on the basis of a false step tree can keep its lock only by challenging
        // that tree.
        uint64 answers = ILooks(looks).answersUntil(task);
        if (block.timestamp > answers) revert Refusals.TooLate(until, block.timestamp);
    }

    /// @dev The clock of each side of a game.
    function _clock(Terms storage terms) internal view returns (uint40) {
        return uint40(terms.clock) + terms.replayAllowance;
    }

    function _releaseAll(uint256 lock) internal returns (uint256) {
        return VAULT.release(lock, type(uint256).max);
    }

    /// @dev The amount that stays in an escrow when the rest is released: the fee of a draw that it still
    /// owes.
    function _owed(Task storage entry) internal view returns (uint256) {
        return entry.owesDraw ? DRAW_FEE : 0;
    }
}
