// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Draws} from "./audit/Draws.sol";
import {JuryVotes} from "./audit/JuryVotes.sol";
import {IAuditBoard} from "./interfaces/IAuditBoard.sol";
import {IBeacon} from "./interfaces/IBeacon.sol";
import {ILooks} from "./interfaces/ILooks.sol";
import {IStakeVault} from "./interfaces/IStakeVault.sol";
import {ITaskMarket} from "./interfaces/ITaskMarket.sol";
import {Cells} from "./libraries/Cells.sol";
import {Digests} from "./libraries/Digests.sol";
import {DrawWords} from "./libraries/DrawWords.sol";
import {Fees} from "./libraries/Fees.sol";
import {Refusals} from "./libraries/Refusals.sol";
import {TaskId} from "./types/Ids.sol";
import {Audit, Seat} from "./types/Seats.sol";

/// @title AuditBoard: registered verifiers, draws of seats, looks and juries by the beacon, attestations
/// (audit.md sections 1 to 7).
contract AuditBoard is JuryVotes {
    using Cells for Cells.Table;
    using DrawWords for DrawWords.Stream;

    /// @dev Draws of a level of looks before silent looks are given up.
    uint256 private constant LOOK_TRIES = 3;

    uint32 private immutable STALL_PERIOD;

    modifier onlyMarket() {
        _only(address(MARKET));
        _;
    }

    modifier onlyLooks() {
        _only(_looks());
        _;
    }

    constructor(IStakeVault vault, ITaskMarket market, IBeacon beacon)
        Draws(vault, market, beacon, market.parameters())
    {
        STALL_PERIOD = market.parameters().stallPeriod;
    }

    // ------------------------------------------------------------------ asking for draws

    /// @inheritdoc IAuditBoard
    function snapshot(TaskId task) external onlyMarket {
        (_audits[task].pool, _audits[task].version) = (_pool.lengths, uint56(_pool.version));
    }

    /// @inheritdoc IAuditBoard
    function askFirstDraw(TaskId task, uint256 verifiers) external onlyMarket returns (uint64 round) {
        Audit storage audit = _audits[task];
        audit.escrowDraws = 1;
        return _ask(task, audit, 0, uint32((1 << verifiers) - 1), 0);
    }

    /// @inheritdoc IAuditBoard
    function redraw(TaskId task) external {
        ITaskMarket.SeatTerms memory terms = _submitted(task);
        Audit storage audit = _audits[task];
        if (audit.pending) revert Refusals.DrawPending(task);
        // Every seat or look that has an account and is not attested has the time that ends with `until`.
        if (block.timestamp <= audit.until) revert Refusals.TooEarly(audit.until, block.timestamp);
        if (audit.claimant != 0) revert Refusals.JuryOpen(task);
        if (audit.level == 0) _redrawSeats(task, audit, terms);
        else _redrawLooks(task, audit, terms);
    }

    /// @inheritdoc IAuditBoard
    function lapse(TaskId task) external {
        ITaskMarket.SeatTerms memory terms = _submitted(task);
        Audit storage audit = _audits[task];
        if (!audit.pending || audit.level == 0) revert Refusals.NotStalled(task);
        uint64 until = uint64(BEACON.timeOf(audit.round)) + STALL_PERIOD;
        if (block.timestamp <= until) revert Refusals.TooEarly(until, block.timestamp);
        (audit.pending, audit.looking, audit.claimant) = (false, 0, 0);
        if (audit.attested < terms.verifiers) audit.level = 0;
        MARKET.drawn(task, msg.sender, uint64(block.timestamp));
    }

    // ------------------------------------------------------------------ seats

    /// @inheritdoc IAuditBoard
    function attest(TaskId task, uint256 seat, bytes32 digest, bytes32 saltHash) external {
        (uint256 cell, address account) = _seat(task, seat);
        if (msg.sender != account) revert Refusals.NotAllowed(account, msg.sender);
        if (cell & Cells.ATTESTED != 0) revert Refusals.AlreadyAttested(task, seat);
        Audit storage audit = _audits[task];
        if (block.timestamp > audit.until) revert Refusals.TooLate(audit.until, block.timestamp);
        if (seat >= Cells.FIRST_JUROR) return _vote(task, seat, cell, digest, saltHash);
        if (audit.claimant == seat + 1) revert Refusals.JuryOpen(task);
        ITaskMarket.SeatTerms memory terms = _submitted(task);
        _seats[task].set(seat, cell | Cells.ATTESTED);
        attestationOf[task][seat] = Digests.attestation(digest, saltHash);
        emit Attested(task, seat, msg.sender, digest, saltHash);
        (uint256 level, uint256 slot) = Cells.placeOf(seat);
        if (level == 0) {
            if (++audit.attested == terms.verifiers) _stageOver(task, audit, terms);
            return;
        }
        (audit.looking, audit.looked) = (audit.looking & ~uint32(1 << slot), audit.looked | uint32(1 << slot));
        MARKET.payLook(task, account);
        if (audit.looking == 0) _stageOver(task, audit, terms);
    }

    /// @inheritdoc IAuditBoard
    function caught(TaskId task, uint256 seat, address to)
        external
        onlyLooks
        returns (address account, uint256 paid)
    {
        ITaskMarket.SeatTerms memory terms = _submitted(task);
        uint256 cell;
        (cell, account) = _seat(task, seat);
        if (cell & Cells.ATTESTED == 0 || seat >= terms.verifiers) revert Refusals.NotAttested(task, seat);
        Audit storage audit = _audits[task];
        // Informing ends when the round of the first looks is published: salts are revealed after that, and a
        // seat that knows what was picked could give up half of its lock here to avoid losing all of it. A
        // proposer that dates its block before the round can still do so. An earlier end, when looks are
        // requested, would leave no time to inform on the seat that attests last.
        bool over = audit.level != 0 && (!audit.pending || block.timestamp >= BEACON.timeOf(audit.round));
        if (over || audit.pickedAt != 0) revert Refusals.LooksDrawn(task);
        _seats[task].set(seat, 0);
        delete attestationOf[task][seat];
        --audit.attested;
        audit.informedAt = uint40(block.timestamp);
        paid = VAULT.pay(_accounts[Cells.holder(cell)].lock, to, terms.lock / 2);
        (, uint48 purse) = _suspend(cell, terms.lock - paid, audit.purse == 0);
        if (purse != 0) audit.purse = purse;
    }

    /// @inheritdoc IAuditBoard
    function forfeit(TaskId task, uint256 seat, address to) external returns (address account, uint256 paid) {
        _only(seat < Cells.FIRST_JUROR ? _looks() : _juries());
        ITaskMarket.SeatTerms memory terms = _submitted(task);
        uint256 cell;
        (cell, account) = _seat(task, seat);
        if (cell & (Cells.ATTESTED | Cells.CAUGHT) != Cells.ATTESTED) {
            revert Refusals.NotAttested(task, seat);
        }
        _seats[task].set(seat, cell | Cells.CAUGHT);
        if (to != address(0)) paid = VAULT.pay(_accounts[Cells.holder(cell)].lock, to, terms.lock / 2);
        _suspend(cell, terms.lock - paid, false);
    }

    /// @inheritdoc IAuditBoard
    function release(TaskId task, uint256 seat) external {
        _requireOver(task);
        (uint256 cell, address account) = _seat(task, seat);
        // The account of a caught seat was suspended: only `resume` frees it, after which it may have a seat
        // of another task.
        if (cell == 0 || cell & (Cells.RELEASED | Cells.CAUGHT) != 0) {
            revert Refusals.NothingToRelease(task, seat);
        }
        _seats[task].set(seat, cell | Cells.RELEASED);
        _free(task, seat, cell, account);
    }

    /// @inheritdoc IAuditBoard
    function burnPurse(TaskId task) external {
        _requireOver(task);
        Audit storage audit = _audits[task];
        uint48 purse = audit.purse;
        if (purse == 0) revert Refusals.NoPurse(task);
        audit.purse = 0;
        VAULT.burn(purse, type(uint256).max);
    }

    // ------------------------------------------------------------------ views

    /// @inheritdoc IAuditBoard
    function auditOf(TaskId task) external view returns (Audit memory audit) {
        audit = _audits[task];
        // A task that has been drawn has terms.
        if (audit.drawnAt != 0) audit.audited = _isAudited(task, _termsOf(task).verifiers);
    }

    /// @inheritdoc IAuditBoard
    function pickedAt(TaskId task) external view returns (uint64 time, bytes32 seed) {
        return (_audits[task].pickedAt, _audits[task].seed);
    }

    /// @inheritdoc IAuditBoard
    function seatsOf(TaskId task) external view returns (Seat[] memory seats) {
        Audit storage audit = _audits[task];
        if (audit.drawnAt == 0) return seats;
        seats = new Seat[](_termsOf(task).verifiers);
        for (uint256 i; i < seats.length; ++i) {
            seats[i] = seatOf(task, i);
        }
    }

    /// @inheritdoc IAuditBoard
    function looksOf(TaskId task) external view returns (uint256[] memory numbers, Seat[] memory looks) {
        uint256 last = _audits[task].level == 0 ? 0 : Cells.number(_audits[task].level, 31);
        numbers = new uint256[](_audits[task].looks);
        uint256 count;
        for (uint256 i = Cells.number(1, 0); i <= last && count < numbers.length; ++i) {
            if (_seats[task].get(i) != 0) numbers[count++] = i;
        }
        assembly ("memory-safe") {
            mstore(numbers, count)
        }
        looks = new Seat[](count);
        for (uint256 i; i < count; ++i) {
            looks[i] = seatOf(task, numbers[i]);
        }
    }

    /// @inheritdoc IAuditBoard
    function seatOf(TaskId task, uint256 seat) public view returns (Seat memory) {
        (uint256 cell, address account) = _seat(task, seat);
        return Seat(
            account,
            Cells.holder(cell),
            _audits[task].until,
            cell & Cells.ATTESTED != 0,
            cell & Cells.RELEASED != 0,
            cell & Cells.CAUGHT != 0
        );
    }

    /// @inheritdoc IAuditBoard
    function requireAudited(TaskId task, uint256 verifiers) external view {
        if (!_isAudited(task, verifiers) || ILooks(_looks()).openAccusations(task) != 0) {
            revert Refusals.NotAudited(task);
        }
    }

    /// @inheritdoc IAuditBoard
    function requireVoidable(TaskId task) external view {
        Audit storage audit = _audits[task];
        bool empty;
        uint256 verifiers = _termsOf(task).verifiers;
        for (uint256 i; i < verifiers; ++i) {
            if (_seats[task].get(i) == 0) empty = true;
        }
        if (!empty || audit.escrowDraws < Fees.ESCROW_DRAWS || audit.purse != 0) {
            revert Refusals.NotVoidable(task);
        }
    }

    /// @inheritdoc IAuditBoard
    function stallsFrom(TaskId task) external view returns (uint64) {
        Audit storage audit = _audits[task];
        if (audit.attested == _termsOf(task).verifiers) revert Refusals.NotStalled(task);
        // A drawn jury has its own deadline.
        if (audit.claimant != 0 && !audit.pending) revert Refusals.JuryOpen(task);
        uint256 since = audit.drawnAt == 0 || audit.claimant != 0 ? BEACON.timeOf(audit.round) : audit.drawnAt;
        return uint64(since < audit.informedAt ? audit.informedAt : since);
    }

    /// @inheritdoc IAuditBoard
    function segmentsOf(TaskId task, uint256 seat) external view returns (uint32[] memory) {
        bytes32 seed = _audits[task].seed;
        if (seed == 0) revert Refusals.NotDrawn(task);
        ITaskMarket.SeatTerms memory terms = _termsOf(task);
        (uint256 level, uint256 slot) = Cells.placeOf(seat);
        uint256 each = terms.segmentsPerVerifier;
        uint256 replayed = level == 0 ? seat : slot / each;
        if (replayed >= terms.verifiers || level > Cells.LOOK_LEVELS) {
            revert Refusals.UnknownSeat(task, seat, terms.verifiers);
        }
        uint32[] memory segments =
            DrawWords.start(keccak256(abi.encode(seed, replayed))).distinct(terms.segments, each);
        if (level == 0) return segments;
        uint32[] memory one = new uint32[](1);
        one[0] = segments[slot % each];
        return one;
    }

    // ------------------------------------------------------------------ inside

    function _looks() private view returns (address) {
        return MARKET.looks();
    }

    function _isAudited(TaskId task, uint256 verifiers) private view returns (bool) {
        Audit storage audit = _audits[task];
        return audit.attested == verifiers && !audit.pending && audit.looking == 0;
    }

    function _requireOver(TaskId task) private view {
        ITaskMarket.Status status = MARKET.statusOf(task);
        if (status == ITaskMarket.Status.Submitted) revert Refusals.WrongStatus(task, status);
    }

    function _redrawSeats(TaskId task, Audit storage audit, ITaskMarket.SeatTerms memory terms) private {
        _requireNumber(task, audit, MAX_DRAWS);
        uint32 seats;
        // The draw fee left by an informed seat, which has been empty since.
        uint48 purse = audit.purse;
        if (purse != 0) audit.purse = 0;
        for (uint256 i; i < terms.verifiers; ++i) {
            uint256 cell = _seats[task].get(i);
            if (cell & Cells.ATTESTED != 0) continue;
            seats |= uint32(1 << i);
            if (cell == 0) continue;
            uint48 paid = _silent(task, i, cell, terms, purse == 0);
            if (purse == 0) purse = paid;
        }
        if (seats == 0) revert Refusals.NothingToRedraw(task);
        if (purse == 0) {
            if (audit.escrowDraws >= Fees.ESCROW_DRAWS) revert Refusals.NoDrawsLeft(task, Fees.ESCROW_DRAWS);
            ++audit.escrowDraws;
        }
        MARKET.drawAsked(task, purse == 0);
        // The level is 0. If it were given as a literal, the compiler would copy the function for this call.
        _ask(task, audit, audit.level, seats, purse);
    }

    /// @dev Every awaited look has an account, because a look for which nobody was found is given up.
    function _redrawLooks(TaskId task, Audit storage audit, ITaskMarket.SeatTerms memory terms) private {
        uint32 slots = audit.looking;
        if (slots == 0) revert Refusals.NothingToRedraw(task);
        uint8 level = audit.level;
        bool last = audit.lookDraws == LOOK_TRIES || audit.draws == MAX_DRAWS;
        uint48 purse;
        for (uint256 i; slots >> i != 0; ++i) {
            if (slots >> i & 1 == 0) continue;
            uint256 number = Cells.number(level, i);
            uint48 paid = _silent(task, number, _seats[task].get(number), terms, purse == 0 && !last);
            if (purse == 0) purse = paid;
        }
        if (last) {
            audit.looking = 0;
            return _stageOver(task, audit, terms);
        }
        ++audit.lookDraws;
        MARKET.drawAsked(task, false);
        _ask(task, audit, level, slots, purse);
    }
}
