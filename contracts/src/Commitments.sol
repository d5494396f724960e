// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAuditBoard} from "./interfaces/IAuditBoard.sol";
import {ICommitments} from "./interfaces/ICommitments.sol";
import {IDisputeGame} from "./interfaces/IDisputeGame.sol";
import {IStakeVault} from "./interfaces/IStakeVault.sol";
import {ITaskMarket} from "./interfaces/ITaskMarket.sol";
import {Cells} from "./libraries/Cells.sol";
import {Refusals} from "./libraries/Refusals.sol";
import {GameId, SegmentIndex, TaskId} from "./types/Ids.sol";
import {Parameters} from "./types/Parameters.sol";
import {Seat} from "./types/Seats.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";

/// @title Commitments: bonds before a game, and payments to seats after a conviction (dispute.md section 6,
/// audit.md section 8).
/// @dev Every claim names its evidence, so no claim loops over seats, games or commitments. The terms make
/// the stake cover all of them.
contract Commitments is ICommitments {
    /// @notice A commitment that was neither opened nor forfeited.
    struct Commitment {
        // ---- slot 0, 80 bits are free
        uint48 lock;
        uint48 task;
        /// Last second to open it.
        uint40 until;
        /// The block in which it was made.
        uint40 madeIn;
    }

    /// @notice Payments made after a task's conviction: a bit for each seat and each look.
    struct Paid {
        uint256 costs;
        uint256 fees;
    }

    /// @notice Seat number of an account that has no seat.
    uint8 private constant NO_SEAT = type(uint8).max;
    /// @notice Numbers below this are seats, others are looks (libraries/Cells.sol).
    uint8 private constant FIRST_LOOK = 32;
    /// @notice Segment of a commitment made before the segment is known.
    SegmentIndex private constant SEGMENT_UNKNOWN = SegmentIndex.wrap(type(uint32).max);
    /// @notice Segment of a game or conviction that selected none.
    SegmentIndex private constant NO_SEGMENT = SegmentIndex.wrap(0);
    /// @dev Number of a task's bonds before doubling starts: the number of its games that are played at once.
    uint256 private constant SINGLE_BONDS = 16;
    /// @dev A bond doubled this often exceeds what any lock holds.
    uint256 private constant MOST_DOUBLINGS = 96;

    IStakeVault private immutable VAULT;
    ITaskMarket private immutable MARKET;
    IAuditBoard private immutable BOARD;
    uint32 private immutable OPENING_PERIOD;
    uint64 private immutable CLAIM_PERIOD;

    /// @dev Per account, so that nobody can use up another account's commitment by copying it.
    mapping(address account => mapping(bytes32 commitment => Commitment)) private _commitments;
    /// @dev Accounts that have committed from a seat of the task. Their next bond may double: otherwise one
    /// seat could commit at single bonds until everyone else's bonds double.
    mapping(TaskId task => mapping(address account => bool)) private _single;
    mapping(TaskId task => Paid) private _paid;

    /// @inheritdoc ICommitments
    mapping(TaskId task => uint32) public held;

    constructor(IStakeVault vault, ITaskMarket market, IAuditBoard board) {
        (VAULT, MARKET, BOARD) = (vault, market, board);
        Parameters memory parameters = market.parameters();
        OPENING_PERIOD = parameters.openingPeriod;
        // Commitments made before the conviction are opened within the opening period.
        CLAIM_PERIOD = uint64(parameters.openingPeriod) + parameters.stallPeriod;
    }

    // ------------------------------------------------------------------ commitments

    /// @inheritdoc ICommitments
    function commit(TaskId task, uint8 seat, bytes32 commitment) external {
        Commitment storage made = _commitments[msg.sender][commitment];
        if (made.until != 0) revert Refusals.AlreadyCommitted(commitment);
        uint256 bond = bondOf(task, seat, msg.sender);
        ++held[task];
        if (seat != NO_SEAT) _single[task][msg.sender] = true;
        (made.task, made.until) = (uint48(TaskId.unwrap(task)), uint40(block.timestamp) + OPENING_PERIOD);
        made.madeIn = uint40(block.number);
        made.lock = uint48(VAULT.lock(msg.sender, bond));
        emit Committed(task, commitment, msg.sender, bond);
    }

    /// @inheritdoc ICommitments
    function open(TaskId task, SegmentIndex segment, address challenger, bytes32 salt)
        external
        returns (uint48 lock, uint40 madeIn)
    {
        _requireGame();
        (, Commitment memory made) = _opened(task, segment, challenger, salt);
        if (made.madeIn == block.number) revert Refusals.SameBlock(block.number);
        return (made.lock, made.madeIn);
    }

    /// @inheritdoc ICommitments
    function dismissed(TaskId task) external {
        _requireGame();
        --held[task];
    }

    /// @inheritdoc ICommitments
    function openLate(TaskId task, SegmentIndex segment, bytes32 salt, uint8 seat) external {
        _conviction(task);
        (bytes32 commitment, Commitment memory made) = _opened(task, segment, msg.sender, salt);
        --held[task];
        VAULT.release(made.lock, type(uint256).max);
        emit OpenedLate(task, commitment, msg.sender);
        if (seat == NO_SEAT) return;
        Seat memory found = _held(task, seat, msg.sender);
        if (segment != SEGMENT_UNKNOWN && !_has(task, seat, segment)) {
            revert Refusals.NotItsSegment(task, seat, segment);
        }
        _pay(task, seat, found, true);
    }

    /// @inheritdoc ICommitments
    function forfeit(address challenger, bytes32 commitment) external {
        Commitment memory made = _commitments[challenger][commitment];
        if (made.until == 0) revert Refusals.NotCommitted(commitment);
        if (block.timestamp <= made.until) revert Refusals.TooEarly(made.until, block.timestamp);
        TaskId task = TaskId.wrap(made.task);
        delete _commitments[challenger][commitment];
        --held[task];
        emit Forfeited(task, commitment, challenger, VAULT.burn(made.lock, type(uint256).max));
    }

    // ------------------------------------------------------------------ claims of seats

    /// @inheritdoc ICommitments
    function compensate(TaskId task, uint8 seat, GameId game) external {
        _conviction(task);
        IDisputeGame.Game memory played = _game().gameOf(game);
        Seat memory found = _seat(task, seat);
        bool its = TaskId.unwrap(played.task) == TaskId.unwrap(task) && played.challenger == found.account
            && played.verdict != IDisputeGame.Verdict.ChallengerSilent
            && played.verdict != IDisputeGame.Verdict.Dropped
            && (played.segment == NO_SEGMENT || _has(task, seat, played.segment));
        // A game that does not exist has no challenger, and an empty seat has no account.
        if (!its || found.account == address(0)) revert Refusals.NotOfSeat(task, seat, game);
        _pay(task, seat, found, true);
    }

    /// @inheritdoc ICommitments
    function payFee(TaskId task, uint8 seat) external {
        SegmentIndex convicted = _conviction(task);
        Seat memory found = BOARD.seatOf(task, seat);
        // A look received its fee when it attested.
        bool owed = found.attested && !found.caught && seat < FIRST_LOOK;
        if (!owed || (convicted != NO_SEGMENT && _has(task, seat, convicted))) {
            revert Refusals.NothingOwed(task, seat);
        }
        _pay(task, seat, found, false);
    }

    // ------------------------------------------------------------------ views

    /// @inheritdoc ICommitments
    function bondOf(TaskId task, uint8 seat, address challenger) public view returns (uint256) {
        (uint256 bond, bool doubles) = MARKET.bondOf(task);
        if (seat != NO_SEAT) {
            _held(task, seat, challenger);
            if (!_single[task][challenger]) return bond;
        }
        if (!doubles) return bond;
        uint256 others = held[task];
        return others < SINGLE_BONDS ? bond : bond << Math.min(others + 1 - SINGLE_BONDS, MOST_DOUBLINGS);
    }

    /// @inheritdoc ICommitments
    function claimsUntil(TaskId task) public view returns (uint64) {
        (uint64 time,) = _game().convictionOf(task);
        if (time == 0) revert Refusals.NotConvicted(task);
        return time + CLAIM_PERIOD;
    }

    // ------------------------------------------------------------------ inside

    function _requireGame() private view {
        address game = address(_game());
        if (msg.sender != game) revert Refusals.NotAllowed(game, msg.sender);
    }

    function _game() private view returns (IDisputeGame) {
        return IDisputeGame(MARKET.game());
    }

    /// @dev The convicted segment; reverts once the time for claims on the stake is over.
    function _conviction(TaskId task) private view returns (SegmentIndex segment) {
        uint64 until = claimsUntil(task);
        if (block.timestamp > until) revert Refusals.TooLate(until, block.timestamp);
        (, segment) = _game().convictionOf(task);
    }

    /// @dev Opens a commitment in time and uses it up.
    function _opened(TaskId task, SegmentIndex segment, address challenger, bytes32 salt)
        private
        returns (bytes32 commitment, Commitment memory made)
    {
        commitment = keccak256(abi.encode(block.chainid, address(this), task, segment, challenger, salt));
        made = _commitments[challenger][commitment];
        // The task in the hash must be the task of the bond; otherwise a small task's bond could challenge a
        // large task.
        if (made.until == 0 || made.task != TaskId.unwrap(task)) revert Refusals.NotCommitted(commitment);
        if (block.timestamp > made.until) revert Refusals.TooLate(made.until, block.timestamp);
        delete _commitments[challenger][commitment];
    }

    /// @dev A seat or look. A juror has no claim on the stake: its number yields an empty seat.
    function _seat(TaskId task, uint8 seat) private view returns (Seat memory found) {
        if (seat < Cells.FIRST_JUROR) found = BOARD.seatOf(task, seat);
    }

    /// @dev The seat; reverts unless the account holds it.
    function _held(TaskId task, uint8 seat, address account) private view returns (Seat memory found) {
        found = _seat(task, seat);
        if (account != found.account) revert Refusals.NotAllowed(found.account, account);
    }

    /// @dev Whether the segment is one of the seat's.
    function _has(TaskId task, uint8 seat, SegmentIndex segment) private view returns (bool) {
        uint32[] memory segments = BOARD.segmentsOf(task, seat);
        for (uint256 i; i < segments.length; ++i) {
            if (segments[i] == SegmentIndex.unwrap(segment)) return true;
        }
        return false;
    }

    /// @dev Pays what the seat is still owed: its fee and, if it spoke up, a game's cost.
    function _pay(TaskId task, uint8 seat, Seat memory found, bool spokeUp) private {
        Paid storage paid = _paid[task];
        uint256 bit = 1 << seat;
        bool cost = spokeUp && paid.costs & bit == 0;
        bool fee = paid.fees & bit == 0 && !found.caught && (seat < FIRST_LOOK || !found.attested);
        if (!cost && !fee) revert Refusals.NothingOwed(task, seat);
        if (cost) paid.costs |= bit;
        if (fee) paid.fees |= bit;
        uint256 segments = fee ? BOARD.segmentsOf(task, seat).length : 0;
        uint256 amount = MARKET.compensate(task, found.account, cost, segments);
        emit Compensated(task, seat, found.account, amount);
    }
}
