// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Registrations} from "./audit/Registrations.sol";
import {IAuditBoard} from "./interfaces/IAuditBoard.sol";
import {IBeacon} from "./interfaces/IBeacon.sol";
import {IStakeVault} from "./interfaces/IStakeVault.sol";
import {ITaskMarket} from "./interfaces/ITaskMarket.sol";
import {Cells} from "./libraries/Cells.sol";
import {Digests} from "./libraries/Digests.sol";
import {DrawWords} from "./libraries/DrawWords.sol";
import {Errors} from "./libraries/Errors.sol";
import {Fees} from "./libraries/Fees.sol";
import {Pool} from "./libraries/Pool.sol";
import {TermsCheck} from "./libraries/TermsCheck.sol";
import {MapHints} from "./types/Hints.sol";
import {TaskId} from "./types/Ids.sol";
import {Parameters} from "./types/Parameters.sol";
import {Audit, PendingDraw, Seat} from "./types/Seats.sol";
import {Terms} from "./types/Terms.sol";

/// @title AuditBoard: registered verifiers, draws of seats by the beacon, attestations (dispute.md section 3).
/// @notice A draw cannot be chosen. Its round is fixed before it is published. Draws are executed in the order in which they were
/// asked for, also those of tasks that are over. Whoever is bound or freed by one, or freed otherwise, takes no part in draws
/// that were asked for before that; nor does a later resignation or registration change them.
contract AuditBoard is Registrations {
    using Cells for Cells.Table;
    using DrawWords for DrawWords.Stream;
    using Pool for Pool.Table;

    /// @dev What one execution of a draw works with.
    struct Drawing {
        TaskId task;
        /// When the round was fixed.
        uint40 fixedAt;
        /// The task is audited: else its seats bind nobody.
        bool live;
        uint40 until;
        uint256 tries;
        Pool.Choice choice;
        DrawWords.Stream stream;
        ITaskMarket.SeatTerms terms;
    }

    /// @dev Tries for a seat before it stays empty, and for all seats of a draw: these bound its gas, for a queue whose first
    /// draw cannot be executed would stand still. Where half of the accounts are taken, 32 tries fail once in 4 x 10^9 times,
    /// and 32 seats need 64 tries.
    uint256 private constant MAX_TRIES = 32;
    uint256 private constant MAX_TRIES_OF_DRAW = 256;
    /// @dev Operations that an offer's fee is for.
    uint256 private constant GIGA = 1e9;

    ITaskMarket private immutable MARKET;
    IBeacon private immutable BEACON;
    uint128 private immutable DRAW_FEE;
    uint32 private immutable DRAW_DELAY;

    /// @dev The queue is entries _first ... _end - 1. They share a slot with what was declared last in Registrations.
    uint64 private _first;
    uint64 private _end;
    mapping(uint256 entry => PendingDraw) private _queue;
    mapping(TaskId task => Audit) private _audits;
    mapping(TaskId task => Cells.Table) private _seats;
    /// @inheritdoc IAuditBoard
    mapping(TaskId task => mapping(uint256 seat => bytes32)) public attestationOf;

    modifier onlyMarket() {
        if (msg.sender != address(MARKET)) revert Errors.NotAllowed(address(MARKET), msg.sender);
        _;
    }

    constructor(IStakeVault vault, ITaskMarket market, IBeacon beacon)
        Registrations(vault, market.parameters())
    {
        (MARKET, BEACON) = (market, beacon);
        Parameters memory parameters = market.parameters();
        (DRAW_FEE, DRAW_DELAY) = (parameters.drawFee, parameters.drawDelay);
    }

    // ------------------------------------------------------------------ asking for draws

    /// @inheritdoc IAuditBoard
    function snapshot(TaskId task) external onlyMarket {
        (_audits[task].pool, _audits[task].version) = (_pool.lengths, _pool.version);
    }

    /// @inheritdoc IAuditBoard
    function askFirstDraw(TaskId task, uint256 verifiers) external onlyMarket returns (uint64 round) {
        Audit storage audit = _audits[task];
        audit.escrowDraws = 1;
        return _ask(task, audit, uint32((1 << verifiers) - 1), 0);
    }

    /// @inheritdoc IAuditBoard
    function redraw(TaskId task) external {
        ITaskMarket.SeatTerms memory terms = MARKET.seatTermsOf(task);
        if (terms.status != ITaskMarket.Status.Submitted) revert Errors.WrongStatus(task, terms.status);
        Audit storage audit = _audits[task];
        if (audit.pending) revert Errors.DrawPending(task);
        if (audit.draws == type(uint8).max) revert Errors.NoDrawsLeft(task, type(uint8).max);
        // All seats that have an account and are not attested were in the last draw.
        if (block.timestamp <= audit.until) revert Errors.TooEarly(audit.until, block.timestamp);
        Cells.Table storage cells = _seats[task];
        uint32 seats;
        // Left by an informed seat, which is empty since then.
        uint48 purse = audit.purse;
        if (purse != 0) audit.purse = 0;
        for (uint256 i; i < terms.verifiers; ++i) {
            uint256 cell = cells.get(i);
            if (cell & Cells.ATTESTED != 0) continue;
            seats |= uint32(1 << i);
            if (cell == 0) continue;
            cells.set(i, 0);
            // Its lock is whole, and TermsCheck has a seat's lock cover the penalty.
            uint256 penalty = terms.fee + DRAW_FEE;
            (address account, uint48 paid) = _suspend(cell, penalty, purse == 0);
            if (purse == 0) purse = paid;
            emit Silent(task, i, account, penalty);
        }
        if (seats == 0) revert Errors.NothingToRedraw(task);
        if (purse == 0) {
            if (audit.escrowDraws == Fees.ESCROW_DRAWS) revert Errors.NoDrawsLeft(task, Fees.ESCROW_DRAWS);
            ++audit.escrowDraws;
        }
        MARKET.drawAsked(task, purse == 0);
        _ask(task, audit, seats, purse);
    }

    // ------------------------------------------------------------------ draws

    /// @inheritdoc IAuditBoard
    function draw(TaskId task, bytes calldata signature, MapHints[2] calldata hints) external {
        PendingDraw memory entry = _queue[_first];
        if (entry.task != TaskId.unwrap(task)) revert Errors.NotFirst(TaskId.wrap(entry.task), task);
        bytes32 word = BEACON.word(entry.round, signature, hints);
        delete _queue[_first++];
        if (entry.purse != 0) VAULT.pay(entry.purse, msg.sender, type(uint256).max);
        Audit storage audit = _audits[task];
        Drawing memory drawing;
        drawing.terms = MARKET.drawn(task, msg.sender);
        uint8 number = audit.draws;
        bytes32 seed =
            keccak256(abi.encode(block.chainid, address(this), task, drawing.terms.root, number, word));
        (drawing.task, drawing.fixedAt) = (task, entry.fixedAt);
        drawing.live = drawing.terms.status == ITaskMarket.Status.Submitted;
        drawing.choice = Pool.choose(audit.version, audit.pool, STAKE_UNIT, drawing.terms.lock);
        drawing.stream = DrawWords.start(seed);
        drawing.until = uint40(_until(drawing.terms.attestPeriod));
        audit.pending = false;
        if (drawing.live) {
            audit.until = drawing.until;
            if (audit.drawnAt == 0) (audit.drawnAt, audit.seed) = (uint40(block.timestamp), seed);
        }
        emit Drawn(task, number, seed, msg.sender);
        for (uint256 i; entry.seats >> i != 0; ++i) {
            if (entry.seats >> i & 1 != 0) _fill(drawing, i);
        }
    }

    // ------------------------------------------------------------------ seats

    /// @inheritdoc IAuditBoard
    function attest(TaskId task, uint256 seat, bytes32 digest, bytes32 saltHash) external {
        (uint256 cell, address account) = _seat(task, seat);
        if (msg.sender != account) revert Errors.NotAllowed(account, msg.sender);
        if (cell & Cells.ATTESTED != 0) revert Errors.AlreadyAttested(task, seat);
        Audit storage audit = _audits[task];
        if (block.timestamp > audit.until) revert Errors.TooLate(audit.until, block.timestamp);
        _requireStatus(task, true);
        _seats[task].set(seat, cell | Cells.ATTESTED);
        ++audit.attested;
        attestationOf[task][seat] = Digests.attestation(digest, saltHash);
        emit Attested(task, seat, msg.sender, digest, saltHash);
    }

    /// @inheritdoc IAuditBoard
    function caught(TaskId task, uint256 seat, address to) external returns (address account, uint256 paid) {
        address looks = MARKET.looks();
        if (msg.sender != looks) revert Errors.NotAllowed(looks, msg.sender);
        ITaskMarket.SeatTerms memory terms = MARKET.seatTermsOf(task);
        if (terms.status != ITaskMarket.Status.Submitted) revert Errors.WrongStatus(task, terms.status);
        uint256 cell;
        (cell, account) = _seat(task, seat);
        if (cell & Cells.ATTESTED == 0) revert Errors.NotAttested(task, seat);
        _seats[task].set(seat, 0);
        delete attestationOf[task][seat];
        Audit storage audit = _audits[task];
        --audit.attested;
        audit.informedAt = uint40(block.timestamp);
        paid = VAULT.pay(_accounts[Cells.holder(cell)].lock, to, terms.lock / 2);
        (, uint48 purse) = _suspend(cell, terms.lock - paid, audit.purse == 0);
        if (purse != 0) audit.purse = purse;
    }

    /// @inheritdoc IAuditBoard
    function release(TaskId task, uint256 seat) external {
        _requireStatus(task, false);
        (uint256 cell, address account) = _seat(task, seat);
        if (cell == 0 || cell & Cells.RELEASED != 0) revert Errors.NothingToRelease(task, seat);
        _seats[task].set(seat, cell | Cells.RELEASED);
        _accounts[Cells.holder(cell)].freeSince = uint40(block.timestamp);
        emit Released(task, seat, account);
    }

    /// @inheritdoc IAuditBoard
    function burnPurse(TaskId task) external {
        _requireStatus(task, false);
        Audit storage audit = _audits[task];
        uint48 purse = audit.purse;
        if (purse == 0) revert Errors.NoPurse(task);
        audit.purse = 0;
        VAULT.burn(purse, type(uint256).max);
    }

    // ------------------------------------------------------------------ views

    /// @inheritdoc IAuditBoard
    function auditOf(TaskId task) external view returns (Audit memory) {
        return _audits[task];
    }

    /// @inheritdoc IAuditBoard
    function seatsOf(TaskId task) external view returns (Seat[] memory seats) {
        Audit storage audit = _audits[task];
        if (audit.drawnAt == 0) return seats;
        seats = new Seat[](MARKET.seatTermsOf(task).verifiers);
        for (uint256 i; i < seats.length; ++i) {
            seats[i] = seatOf(task, i);
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
            cell & Cells.RELEASED != 0
        );
    }

    /// @inheritdoc IAuditBoard
    function segmentsOf(TaskId task, uint256 seat) external view returns (uint32[] memory) {
        bytes32 seed = _audits[task].seed;
        if (seed == 0) revert Errors.NotDrawn(task);
        Terms memory terms = MARKET.termsOf(task);
        if (seat >= terms.verifiers) revert Errors.UnknownSeat(task, seat, terms.verifiers);
        return DrawWords.start(keccak256(abi.encode(seed, seat)))
            .distinct(terms.segments, terms.segmentsPerVerifier);
    }

    /// @inheritdoc IAuditBoard
    function firstDraw() external view returns (PendingDraw memory) {
        return _queue[_first];
    }

    // ------------------------------------------------------------------ inside

    /// @dev A seat and its account; zeros if it is empty, or none.
    function _seat(TaskId task, uint256 seat) private view returns (uint256 cell, address account) {
        if (seat >= TermsCheck.MAX_SEATS) return (0, address(0));
        cell = _seats[task].get(seat);
        account = _accounts[Cells.holder(cell)].account;
    }

    /// @dev The task is submitted, or is not.
    function _requireStatus(TaskId task, bool submitted) private view {
        ITaskMarket.Status status = MARKET.taskOf(task).status;
        if ((status == ITaskMarket.Status.Submitted) != submitted) revert Errors.WrongStatus(task, status);
    }

    /// @dev Appends a draw of these seats to the queue. All have the same delay, so rounds ascend.
    function _ask(TaskId task, Audit storage audit, uint32 seats, uint48 purse)
        private
        returns (uint64 round)
    {
        round = BEACON.roundFrom(_until(DRAW_DELAY));
        audit.round = round;
        audit.pending = true;
        uint8 number = ++audit.draws;
        _queue[_end++] =
            PendingDraw(uint40(TaskId.unwrap(task)), seats, round, uint40(block.timestamp), purse);
        emit DrawAsked(task, number, round, seats);
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

    /// @dev Looks for an account for the seat.
    function _fill(Drawing memory drawing, uint256 seat) private {
        (uint40 number, address account) = _find(drawing);
        // Where the task is over the account is free at once: so that it ended after the word was public changes no other draw.
        if (number != 0) _accounts[number].freeSince = drawing.live ? NEVER : uint40(block.timestamp);
        if (!drawing.live) return;
        _seats[drawing.task].set(seat, number);
        emit Seated(drawing.task, seat, account, drawing.until);
    }

    /// @dev The holder of the first uniform slot that can be drawn; 0 if there is none.
    function _find(Drawing memory drawing) private view returns (uint40, address) {
        if (drawing.choice.slots == 0) return (0, address(0));
        for (uint256 tries; tries < MAX_TRIES && drawing.tries < MAX_TRIES_OF_DRAW; ++tries) {
            ++drawing.tries;
            uint40 number = uint40(_pool.pick(drawing.choice, drawing.stream));
            Account storage entry = _accounts[number];
            address account = entry.account;
            // Resigned before the round was fixed, or not free before that.
            uint40 resignedAt = entry.resignedAt;
            if (resignedAt != 0 && resignedAt < drawing.fixedAt) continue;
            if (entry.freeSince >= drawing.fixedAt) continue;
            if (_takes(entry, drawing.terms)) return (number, account);
        }
        return (0, address(0));
    }

    /// @dev The account's offer takes the task. Its products have at most 192 bits.
    function _takes(Account storage entry, ITaskMarket.SeatTerms memory terms) private view returns (bool) {
        return terms.operations <= entry.offeredOperations && terms.stateBytes <= entry.offeredBytes
            && terms.lock <= entry.offeredLock && terms.fee * GIGA >= entry.offeredFee * terms.operations;
    }
}
