// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAuditBoard} from "../interfaces/IAuditBoard.sol";
import {IBeacon} from "../interfaces/IBeacon.sol";
import {IStakeVault} from "../interfaces/IStakeVault.sol";
import {ITaskMarket} from "../interfaces/ITaskMarket.sol";
import {Cells} from "../libraries/Cells.sol";
import {DrawWords} from "../libraries/DrawWords.sol";
import {Fees} from "../libraries/Fees.sol";
import {Picks} from "../libraries/Picks.sol";
import {Pool} from "../libraries/Pool.sol";
import {Refusals} from "../libraries/Refusals.sol";
import {MapHints} from "../types/Hints.sol";
import {TaskId} from "../types/Ids.sol";
import {Parameters} from "../types/Parameters.sol";
import {Audit, Offer, PendingDraw, Registration} from "../types/Seats.sol";
import {Registrations} from "./Registrations.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";

/// @title The queue of draws of seats, looks and juries, and how a draw is executed: audit.md sections 1 and
/// 2.
/// @notice Nobody can choose the result of a draw: its round is fixed before the round is published. Draws
/// are executed in the order in which they were requested, including those of tasks that are over. Once an
/// account is bound or freed, by a draw or otherwise, it takes no part in draws that were requested earlier.
/// A resignation or registration changes no draw that was requested before it; only an account that has left
/// is passed over.
abstract contract Draws is Registrations {
    using Cells for Cells.Table;
    using DrawWords for DrawWords.Stream;
    using Pool for Pool.Table;

    /// @dev Working data of one execution of a draw.
    struct Drawing {
        TaskId task;
        /// When the round was fixed.
        uint40 fixedAt;
        /// The task waits for this draw; otherwise its seats bind nobody.
        bool live;
        uint40 until;
        uint256 tries;
        Pool.Choice choice;
        DrawWords.Stream stream;
        ITaskMarket.SeatTerms terms;
    }

    /// @dev Maximum tries for a seat before it stays empty, and for all seats of a draw. They bound the gas
    /// of a draw, because the queue would halt if its first draw could not be executed. If half of the
    /// accounts are taken, 32 tries all fail once in 4 x 10^9 cases, and 32 seats need 64 tries on average.
    uint256 private constant MAX_TRIES = 32;
    uint256 private constant MAX_TRIES_OF_DRAW = 256;
    /// @dev Draws of a task are numbered by one byte.
    uint8 internal constant MAX_DRAWS = type(uint8).max;
    /// @dev Number of operations that an offer's fee is for.
    uint256 private constant GIGA = 1e9;

    ITaskMarket internal immutable MARKET;
    IBeacon internal immutable BEACON;
    uint128 internal immutable DRAW_FEE;
    uint32 private immutable DRAW_DELAY;

    /// @dev The queue is entries _first ... _end - 1. These two share a slot with the last variables of
    /// Registrations.
    uint64 private _first;
    uint64 private _end;
    mapping(uint256 entry => PendingDraw) private _queue;
    mapping(TaskId task => Audit) internal _audits;
    mapping(TaskId task => Cells.Table) internal _seats;

    constructor(IStakeVault vault, ITaskMarket market, IBeacon beacon, Parameters memory parameters)
        Registrations(vault, parameters)
    {
        (MARKET, BEACON) = (market, beacon);
        (DRAW_FEE, DRAW_DELAY) = (parameters.drawFee, parameters.drawDelay);
    }

    /// @inheritdoc IAuditBoard
    function draw(TaskId task, bytes calldata signature, MapHints[2] calldata hints) external {
        PendingDraw memory entry = _queue[_first];
        if (entry.task != TaskId.unwrap(task)) revert Refusals.NotFirst(TaskId.wrap(entry.task), task);
        bytes32 word = BEACON.word(entry.round, signature, hints);
        delete _queue[_first++];
        if (entry.purse != 0) VAULT.pay(entry.purse, msg.sender, type(uint256).max);
        Audit storage audit = _audits[task];
        Drawing memory drawing;
        drawing.terms = _termsOf(task);
        bytes32 seed =
            keccak256(abi.encode(block.chainid, address(this), task, drawing.terms.root, entry.number, word));
        (drawing.task, drawing.fixedAt) = (task, entry.fixedAt);
        // A draw of looks or of a jury may have lapsed.
        bool due = audit.pending && audit.round == entry.round;
        drawing.live = due && drawing.terms.status == ITaskMarket.Status.Submitted;
        drawing.choice = Pool.choose(audit.version, audit.pool, STAKE_UNIT, drawing.terms.lock);
        drawing.stream = DrawWords.start(seed);
        emit Drawn(task, entry.number, seed, msg.sender);
        uint256 seats = entry.seats;
        bool picks = seats == 0;
        bool jury = entry.level == Cells.JURY;
        uint256 count;
        if (picks) (seats, count) = _pick(audit, drawing, entry.level);
        uint64 until;
        if (drawing.live) {
            audit.pending = false;
            if (audit.drawnAt == 0) (audit.drawnAt, audit.seed) = (uint40(block.timestamp), seed);
            if (picks) drawing.live = _take(audit, drawing.terms, seats, count);
            if (drawing.live && seats != 0) audit.until = uint40(_until(drawing.terms.attestPeriod));
            drawing.until = audit.until;
            // An account that has just committed to a challenge must still have time to open it.
            until = uint64(Math.max(drawing.until, block.timestamp));
        }
        // The challenge window stays open until a jury ends.
        if (due && !jury) MARKET.drawn(task, msg.sender, until);
        bool looks = drawing.live && entry.level != 0 && !jury;
        for (uint256 i; seats >> i != 0; ++i) {
            if (seats >> i & 1 == 0) continue;
            bool found = _fill(drawing, Cells.number(entry.level, i));
            if (looks && !found) audit.looking &= ~uint32(1 << i);
        }
        if (looks && audit.looking == 0) _stageOver(task, audit, drawing.terms);
    }

    /// @inheritdoc IAuditBoard
    function firstDraw() external view returns (PendingDraw memory) {
        return _queue[_first];
    }

    // ------------------------------------------------------------------ asking

    /// @dev What the task asks of its seats. One function, because the code of an external call and its
    /// decoding is large.
    function _termsOf(TaskId task) internal view returns (ITaskMarket.SeatTerms memory) {
        return MARKET.seatTermsOf(task);
    }

    /// @dev Appends a draw of these seats, or of the slots of a level, to the queue. All draws have the same
    /// delay, so rounds ascend.
    function _ask(TaskId task, Audit storage audit, uint8 level, uint32 seats, uint48 purse)
        internal
        returns (uint64 round)
    {
        round = BEACON.roundFrom(_until(DRAW_DELAY));
        audit.round = round;
        audit.pending = true;
        uint8 number = ++audit.draws;
        _queue[_end++] = PendingDraw(
            uint40(TaskId.unwrap(task)), seats, round, uint40(block.timestamp), purse, level, number
        );
        emit DrawAsked(task, number, level, round, seats);
    }

    /// @dev All seats are attested, or all looks of a level are attested or given up: requests the looks of
    /// the next level, unless none are due.
    function _stageOver(TaskId task, Audit storage audit, ITaskMarket.SeatTerms memory terms) internal {
        uint8 level = audit.level;
        bool more = terms.lookChance != 0 && level < Cells.LOOK_LEVELS && (level == 0 || audit.looked != 0)
            && audit.looks < terms.verifiers * terms.segmentsPerVerifier
            && audit.escrowDraws < Fees.ESCROW_DRAWS + Fees.LOOK_DRAWS && audit.draws != MAX_DRAWS;
        if (!more) return;
        (audit.level, audit.lookDraws) = (level + 1, 1);
        ++audit.escrowDraws;
        MARKET.drawAsked(task, true);
        _ask(task, audit, level + 1, 0, 0);
    }

    // ------------------------------------------------------------------ executing

    /// @dev The slots of a level's looks that the word of its first draw picks. This also runs for a task
    /// that is over, so that its draw finds the same accounts.
    function _pick(Audit storage audit, Drawing memory drawing, uint256 level)
        private
        view
        returns (uint256 slots, uint256 count)
    {
        ITaskMarket.SeatTerms memory terms = drawing.terms;
        uint256 most = uint256(terms.verifiers) * terms.segmentsPerVerifier;
        uint256 candidates = level == 1 ? (1 << most) - 1 : audit.looked;
        return Picks.among(drawing.stream, candidates, terms.lookChance, most - audit.looks);
    }

    /// @dev Records these looks as drawn, unless an informer has emptied a seat since they were requested. In
    /// that case looks are requested again once all seats are attested.
    function _take(Audit storage audit, ITaskMarket.SeatTerms memory terms, uint256 slots, uint256 count)
        private
        returns (bool taken)
    {
        if (audit.attested < terms.verifiers) {
            audit.level = 0;
            return false;
        }
        (audit.looking, audit.looked) = (uint32(slots), 0);
        audit.looks += uint8(count);
        if (count != 0) audit.pickedAt = uint40(block.timestamp);
        return true;
    }

    /// @dev Finds an account for the seat.
    function _fill(Drawing memory drawing, uint256 seat) private returns (bool found) {
        (uint40 number, address account) = _find(drawing);
        // If the task does not wait for this draw, because it is over for example, the account is free at
        // once. So ending a task after the word was public changes no other draw.
        if (number != 0) _accounts[number].freeSince = drawing.live ? NEVER : uint40(block.timestamp);
        if (!drawing.live) return false;
        _seats[drawing.task].set(seat, number);
        emit Seated(drawing.task, seat, account, drawing.until);
        return number != 0;
    }

    /// @dev Tries uniform slots until one belongs to an account that can be drawn; 0 if none is found.
    function _find(Drawing memory drawing) private view returns (uint40, address) {
        if (drawing.choice.slots == 0) return (0, address(0));
        for (uint256 tries; tries < MAX_TRIES && drawing.tries < MAX_TRIES_OF_DRAW; ++tries) {
            ++drawing.tries;
            uint40 number = uint40(_pool.pick(drawing.choice, drawing.stream));
            Registration storage entry = _accounts[number];
            address account = entry.account;
            // Skip an account that resigned before the round was fixed, or that was not free before then.
            uint40 resignedAt = entry.resignedAt;
            if (resignedAt != 0 && resignedAt < drawing.fixedAt) continue;
            if (entry.freeSince >= drawing.fixedAt) continue;
            if (_takes(entry.offer, drawing.terms)) return (number, account);
        }
        return (0, address(0));
    }

    /// @dev Whether the offer accepts the task. If there are looks, all of a seat's segments must fit into a
    /// move time: each may be accused at the same time, and is replayed for the answer. Products have at most
    /// 224 bits.
    function _takes(Offer storage offer, ITaskMarket.SeatTerms memory terms) private view returns (bool) {
        unchecked {
            uint256 time = terms.lookChance == 0 ? terms.attestPeriod : terms.moveTime;
            return terms.operations <= offer.speed * time && terms.stateBytes <= offer.stateBytes
                && terms.lock <= offer.lock && terms.fee * GIGA >= offer.fee * terms.operations
                && terms.leastFee >= offer.seatFee && terms.period <= offer.period;
        }
    }
}
