// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Draws} from "./audit/Draws.sol";
import {IAuditBoard} from "./interfaces/IAuditBoard.sol";
import {IBeacon} from "./interfaces/IBeacon.sol";
import {ILooks} from "./interfaces/ILooks.sol";
import {IStakeVault} from "./interfaces/IStakeVault.sol";
import {ITaskMarket} from "./interfaces/ITaskMarket.sol";
import {Cells} from "./libraries/Cells.sol";
import {Digests} from "./libraries/Digests.sol";
import {DrawWords} from "./libraries/DrawWords.sol";
import {Errors} from "./libraries/Errors.sol";
import {Fees} from "./libraries/Fees.sol";
import {TaskId} from "./types/Ids.sol";
import {Audit, Seat} from "./types/Seats.sol";

/// @title AuditBoard: registered verifiers, draws of seats, looks and juries by the beacon, attestations (dispute.md section 3).
contract AuditBoard is Draws {
    using Cells for Cells.Table;
    using DrawWords for DrawWords.Stream;

    /// @dev Draws of a level of looks, before those that are silent are given up.
    uint256 private constant LOOK_TRIES = 3;
    /// @dev Most draws of a task, which are numbered by a byte; and of these the first ones alone may be of juries, so that claims leave
    /// enough for seats and looks.
    uint8 private constant MAX_DRAWS = type(uint8).max;
    uint8 private constant JURY_DRAWS = 128;

    uint32 private immutable STALL_PERIOD;

    /// @inheritdoc IAuditBoard
    mapping(TaskId task => mapping(uint256 seat => bytes32)) public attestationOf;

    modifier onlyMarket() {
        _only(address(MARKET));
        _;
    }

    modifier onlyLooks() {
        _only(_looks());
        _;
    }

    modifier onlyJuries() {
        _only(_juries());
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
        if (audit.pending) revert Errors.DrawPending(task);
        // All that have an account and are not attested were in the last draw.
        if (block.timestamp <= audit.until) revert Errors.TooEarly(audit.until, block.timestamp);
        if (audit.claimant != 0) revert Errors.JuryOpen(task);
        if (audit.level == 0) _redrawSeats(task, audit, terms);
        else _redrawLooks(task, audit, terms);
    }

    /// @inheritdoc IAuditBoard
    function lapse(TaskId task) external {
        ITaskMarket.SeatTerms memory terms = _submitted(task);
        Audit storage audit = _audits[task];
        if (!audit.pending || audit.level == 0) revert Errors.NotStalled(task);
        uint64 until = uint64(BEACON.timeOf(audit.round)) + STALL_PERIOD;
        if (block.timestamp <= until) revert Errors.TooEarly(until, block.timestamp);
        (audit.pending, audit.looking, audit.claimant) = (false, 0, 0);
        if (audit.attested < terms.verifiers) audit.level = 0;
        MARKET.drawn(task, msg.sender, uint64(block.timestamp));
    }

    // ------------------------------------------------------------------ seats

    /// @inheritdoc IAuditBoard
    function attest(TaskId task, uint256 seat, bytes32 digest, bytes32 saltHash) external {
        (uint256 cell, address account) = _seat(task, seat);
        if (msg.sender != account) revert Errors.NotAllowed(account, msg.sender);
        if (cell & Cells.ATTESTED != 0) revert Errors.AlreadyAttested(task, seat);
        Audit storage audit = _audits[task];
        if (block.timestamp > audit.until) revert Errors.TooLate(audit.until, block.timestamp);
        if (seat >= Cells.FIRST_JUROR) return _vote(task, seat, cell, digest, saltHash);
        if (audit.claimant == seat + 1) revert Errors.JuryOpen(task);
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
        if (cell & Cells.ATTESTED == 0 || seat >= terms.verifiers) revert Errors.NotAttested(task, seat);
        Audit storage audit = _audits[task];
        // From then on salts are revealed. A seat that knows what is picked would lose half of its lock where it owes all.
        bool over = audit.level != 0 && (!audit.pending || block.timestamp >= BEACON.timeOf(audit.round));
        if (over || audit.pickedAt != 0) revert Errors.LooksDrawn(task);
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
        if (cell & (Cells.ATTESTED | Cells.CAUGHT) != Cells.ATTESTED) revert Errors.NotAttested(task, seat);
        _seats[task].set(seat, cell | Cells.CAUGHT);
        if (to != address(0)) paid = VAULT.pay(_accounts[Cells.holder(cell)].lock, to, terms.lock / 2);
        _suspend(cell, terms.lock - paid, false);
    }

    /// @inheritdoc IAuditBoard
    function release(TaskId task, uint256 seat) external {
        _requireOver(task);
        (uint256 cell, address account) = _seat(task, seat);
        // An account that was caught is suspended, as one that was silent is.
        if (cell == 0 || cell & (Cells.RELEASED | Cells.CAUGHT) != 0) {
            revert Errors.NothingToRelease(task, seat);
        }
        _seats[task].set(seat, cell | Cells.RELEASED);
        _free(task, seat, cell, account);
    }

    /// @inheritdoc IAuditBoard
    function burnPurse(TaskId task) external {
        _requireOver(task);
        Audit storage audit = _audits[task];
        uint48 purse = audit.purse;
        if (purse == 0) revert Errors.NoPurse(task);
        audit.purse = 0;
        VAULT.burn(purse, type(uint256).max);
    }

    // ------------------------------------------------------------------ juries

    /// @inheritdoc IAuditBoard
    function askJury(TaskId task, uint256 seat, uint256 jurors, uint48 purse) external onlyJuries {
        Audit storage audit = _audits[task];
        _requireNumber(task, audit, JURY_DRAWS);
        audit.claimant = uint8(seat) + 1;
        MARKET.drawAsked(task, false);
        _ask(task, audit, Cells.JURY, uint32((1 << jurors) - 1), purse);
    }

    /// @inheritdoc IAuditBoard
    function endJury(TaskId task, bool goesOn) external onlyJuries {
        ITaskMarket.SeatTerms memory terms = _submitted(task);
        for (uint256 juror = Cells.FIRST_JUROR; juror < Cells.COUNT; ++juror) {
            (uint256 cell, address account) = _seat(task, juror);
            if (cell == 0) continue;
            if (cell & Cells.ATTESTED == 0) {
                _silent(task, juror, cell, terms, false);
                continue;
            }
            // The next jury's votes are in the same cells.
            _seats[task].set(juror, 0);
            delete attestationOf[task][juror];
            if (cell & Cells.CAUGHT == 0) _free(task, juror, cell, account);
        }
        Audit storage audit = _audits[task];
        audit.claimant = 0;
        if (!goesOn) return;
        uint64 until = _until(terms.attestPeriod);
        (audit.until, audit.informedAt) = (uint40(until), uint40(block.timestamp));
        MARKET.drawn(task, msg.sender, until);
    }

    // ------------------------------------------------------------------ views

    /// @inheritdoc IAuditBoard
    function auditOf(TaskId task) external view returns (Audit memory audit) {
        audit = _audits[task];
        // A task that is drawn has terms.
        if (audit.drawnAt != 0) audit.audited = _isAudited(task, _termsOf(task).verifiers);
    }

    /// @inheritdoc IAuditBoard
    function juryOf(TaskId task)
        external
        view
        returns (uint256 claimant, bool pending, uint64 until, uint256 yes, uint256 no)
    {
        Audit storage audit = _audits[task];
        (claimant, pending, until) = (audit.claimant, audit.pending, audit.until);
        for (uint256 slot; slot < 32; ++slot) {
            uint256 cell = _seats[task].get(Cells.FIRST_JUROR + slot);
            if (cell & Cells.YES != 0) yes |= 1 << slot;
            else if (cell & Cells.ATTESTED != 0) no |= 1 << slot;
        }
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
            revert Errors.NotAudited(task);
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
            revert Errors.NotVoidable(task);
        }
    }

    /// @inheritdoc IAuditBoard
    function stallsFrom(TaskId task) external view returns (uint64) {
        Audit storage audit = _audits[task];
        if (audit.attested == _termsOf(task).verifiers) revert Errors.NotStalled(task);
        // A jury that is drawn has an end of its own.
        if (audit.claimant != 0 && !audit.pending) revert Errors.JuryOpen(task);
        uint256 since = audit.drawnAt == 0 || audit.claimant != 0 ? BEACON.timeOf(audit.round) : audit.drawnAt;
        return uint64(since < audit.informedAt ? audit.informedAt : since);
    }

    /// @inheritdoc IAuditBoard
    function segmentsOf(TaskId task, uint256 seat) external view returns (uint32[] memory) {
        bytes32 seed = _audits[task].seed;
        if (seed == 0) revert Errors.NotDrawn(task);
        ITaskMarket.SeatTerms memory terms = _termsOf(task);
        (uint256 level, uint256 slot) = Cells.placeOf(seat);
        uint256 each = terms.segmentsPerVerifier;
        uint256 replayed = level == 0 ? seat : slot / each;
        if (replayed >= terms.verifiers || level > Cells.LOOK_LEVELS) {
            revert Errors.UnknownSeat(task, seat, terms.verifiers);
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

    function _juries() private view returns (address) {
        return MARKET.juries();
    }

    function _only(address due) private view {
        if (msg.sender != due) revert Errors.NotAllowed(due, msg.sender);
    }

    /// @dev A seat, a look, or a juror, and its account; zeros if it is empty, or none.
    function _seat(TaskId task, uint256 seat) private view returns (uint256 cell, address account) {
        if (seat >= Cells.COUNT) return (0, address(0));
        cell = _seats[task].get(seat);
        account = _accounts[Cells.holder(cell)].account;
    }

    function _isAudited(TaskId task, uint256 verifiers) private view returns (bool) {
        Audit storage audit = _audits[task];
        return audit.attested == verifiers && !audit.pending && audit.looking == 0;
    }

    /// @dev What a submitted task asks of its seats.
    function _submitted(TaskId task) private view returns (ITaskMarket.SeatTerms memory terms) {
        terms = _termsOf(task);
        if (terms.status != ITaskMarket.Status.Submitted) revert Errors.WrongStatus(task, terms.status);
    }

    /// @dev The task has had fewer than `most` draws.
    function _requireNumber(TaskId task, Audit storage audit, uint8 most) private view {
        if (audit.draws >= most) revert Errors.NoDrawsLeft(task, most);
    }

    function _requireOver(TaskId task) private view {
        ITaskMarket.Status status = MARKET.statusOf(task);
        if (status == ITaskMarket.Status.Submitted) revert Errors.WrongStatus(task, status);
    }

    /// @dev A juror's vote: zeros are a no, of which nothing is to be opened.
    function _vote(TaskId task, uint256 juror, uint256 cell, bytes32 digest, bytes32 saltHash) private {
        ITaskMarket.Status status = MARKET.statusOf(task);
        if (status != ITaskMarket.Status.Submitted) revert Errors.WrongStatus(task, status);
        cell |= Cells.ATTESTED;
        if (digest | saltHash != 0) {
            cell |= Cells.YES;
            attestationOf[task][juror] = Digests.attestation(digest, saltHash);
        }
        _seats[task].set(juror, cell);
        emit Attested(task, juror, msg.sender, digest, saltHash);
    }

    /// @dev The seat binds its account no longer.
    function _free(TaskId task, uint256 seat, uint256 cell, address account) private {
        _accounts[Cells.holder(cell)].freeSince = uint40(block.timestamp);
        emit Released(task, seat, account);
    }

    function _redrawSeats(TaskId task, Audit storage audit, ITaskMarket.SeatTerms memory terms) private {
        _requireNumber(task, audit, MAX_DRAWS);
        uint32 seats;
        // Left by an informed seat, which is empty since then.
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
        if (seats == 0) revert Errors.NothingToRedraw(task);
        if (purse == 0) {
            if (audit.escrowDraws >= Fees.ESCROW_DRAWS) revert Errors.NoDrawsLeft(task, Fees.ESCROW_DRAWS);
            ++audit.escrowDraws;
        }
        MARKET.drawAsked(task, purse == 0);
        _ask(task, audit, 0, seats, purse);
    }

    /// @dev Every look that is awaited has an account, for one that nobody was found for is given up.
    function _redrawLooks(TaskId task, Audit storage audit, ITaskMarket.SeatTerms memory terms) private {
        uint32 slots = audit.looking;
        if (slots == 0) revert Errors.NothingToRedraw(task);
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

    /// @dev The account was silent in the seat, which is empty now. If it `pays` a draw, `purse` is the lock with the fee.
    function _silent(TaskId task, uint256 seat, uint256 cell, ITaskMarket.SeatTerms memory terms, bool pays)
        private
        returns (uint48 purse)
    {
        _seats[task].set(seat, 0);
        // Its lock is whole, and TermsCheck has a seat's lock cover the penalty.
        uint256 penalty = terms.fee + DRAW_FEE;
        address account;
        (account, purse) = _suspend(cell, penalty, pays);
        emit Silent(task, seat, account, penalty);
    }

    /// @dev Suspends the account that a cell names, until it resumes. It loses `amount` of its stake.
    /// If it `pays` a draw, the draw fee of that goes to a new lock, `purse`; the rest burns.
    function _suspend(uint256 cell, uint256 amount, bool pays)
        private
        returns (address account, uint48 purse)
    {
        Account storage registration = _accounts[Cells.holder(cell)];
        account = registration.account;
        registration.suspended = true;
        uint256 lock = registration.lock;
        if (pays) {
            VAULT.release(lock, DRAW_FEE);
            purse = uint48(VAULT.lock(account, DRAW_FEE));
            amount -= DRAW_FEE;
        }
        VAULT.burn(lock, amount);
    }
}
