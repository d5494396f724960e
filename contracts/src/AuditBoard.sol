// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {SegmentIndex, TaskId} from "./types/Ids.sol";
import {BlockHeader} from "@openzeppelin/contracts/utils/BlockHeader.sol";
import {Blockhash} from "@openzeppelin/contracts/utils/Blockhash.sol";

import {IAuditBoard} from "./interfaces/IAuditBoard.sol";
import {IStakeVault} from "./interfaces/IStakeVault.sol";
import {ITaskMarket} from "./interfaces/ITaskMarket.sol";
import {DrawWords} from "./libraries/DrawWords.sol";
import {Errors} from "./libraries/Errors.sol";
import {Seats} from "./libraries/Seats.sol";
import {TermsCheck} from "./libraries/TermsCheck.sol";
import {Parameters} from "./types/Parameters.sol";
import {Terms} from "./types/Terms.sol";

/// @title AuditBoard: registered verifiers, draws from a proved block header, plain attestations (dispute.md section 3).
/// @notice A draw cannot be chosen: its block is fixed before it exists, and its header is proved by the chain's own hash
/// (BLOCKHASH for 256 blocks, the EIP-2935 history contract for 8,191).
contract AuditBoard is IAuditBoard {
    using DrawWords for DrawWords.Stream;
    using Seats for Seats.Table;

    /// @notice An account's slots, from its registration to its resignation.
    struct Registration {
        // ---- slot 0
        address verifier;
        uint32 slots;
        /// Block of the resignation, 0 before it.
        uint64 resignedIn;
        // ---- slot 1
        uint256 lock;
    }

    /// @notice A task's draw: `seats` and `version` are of its post, the rest of its draw.
    struct Audit {
        // ---- slot 0
        /// The seats when the task was posted.
        uint32[8] seats;
        // ---- slot 1
        uint64 version;
        uint8 misses;
        /// Every draw found a live slot.
        bool complete;
        uint16 matches;
        /// K, which every drawn verifier replays.
        SegmentIndex last;
        uint64 drawnAt;
        uint64 attestUntil;
    }

    /// @dev The seats of a task's draws, in memory.
    struct Snapshot {
        uint32[8] lengths;
        uint64 version;
        uint32 slots;
    }

    /// @dev Words tried for one draw before it stays unfilled. With nine of ten slots resigned between the post and the
    /// draw 64 tries fail once in a thousand times (0.9^64); who locks that much could be drawn and stay silent.
    uint256 private constant MAX_TRIES = 64;

    /// @dev Blocks before the block of a draw in which a resignation changes nothing any more, where the delay of a draw is not
    /// shorter: an epoch of an L1. The mixHash of a block is fixed by the block before it (EIP-4399), and who proposes several
    /// in a row sees it earlier.
    uint64 private constant EPOCH = 32;

    IStakeVault private immutable VAULT;
    ITaskMarket private immutable MARKET;
    /// @dev Never reaches behind the block that fixed the draw's.
    uint64 private immutable SETTLED_BLOCKS;
    uint256 private immutable STAKE_UNIT;
    uint64 private immutable UNBONDING_PERIOD;
    uint8 private immutable MAX_MISSES;

    /// @dev Numbered from 1 and never removed.
    mapping(uint64 number => Registration) private _registrations;
    uint64 private _newest;
    Seats.Table private _table;
    /// @dev Number of an account's registration; 0 without live slots.
    mapping(address verifier => uint64) private _registrationOf;
    mapping(TaskId task => Audit) private _audits;
    mapping(TaskId task => Duty[]) private _duties;

    /// @inheritdoc IAuditBoard
    uint32 public liveSlots;
    /// @inheritdoc IAuditBoard
    uint32 public liveVerifiers;

    constructor(IStakeVault vault, ITaskMarket market) {
        (VAULT, MARKET) = (vault, market);
        Parameters memory parameters = market.parameters();
        SETTLED_BLOCKS = parameters.drawDelay < EPOCH ? parameters.drawDelay : EPOCH;
        STAKE_UNIT = parameters.stakeUnit;
        UNBONDING_PERIOD = parameters.unbondingPeriod;
        MAX_MISSES = parameters.maxMisses;
    }

    // ------------------------------------------------------------------ verifiers

    /// @inheritdoc IAuditBoard
    function register(uint32 count) external {
        if (_registrationOf[msg.sender] != 0) revert Errors.AlreadyRegistered(msg.sender);
        uint32 room = type(uint32).max - liveSlots;
        uint256 most = room < Seats.MAX_COUNT ? room : Seats.MAX_COUNT;
        if (count == 0 || count > most) revert Errors.OutOfBounds("count", 1, most, count);
        liveSlots += count;
        ++liveVerifiers;
        uint256 lock = VAULT.lock(msg.sender, count * STAKE_UNIT);
        uint64 number = ++_newest;
        _registrations[number] = Registration(msg.sender, count, 0, lock);
        _registrationOf[msg.sender] = number;
        _table.take(number, count);
        emit Registered(msg.sender, count);
    }

    /// @inheritdoc IAuditBoard
    function resign() external {
        uint64 number = _registrationOf[msg.sender];
        if (number == 0) revert Errors.NotRegistered(msg.sender);
        Registration storage registration = _registrations[number];
        registration.resignedIn = uint64(block.number);
        delete _registrationOf[msg.sender];
        uint32 count = registration.slots;
        _table.vacate(number, count);
        liveSlots -= count;
        --liveVerifiers;
        uint64 until = uint64(block.timestamp) + UNBONDING_PERIOD;
        VAULT.unbond(registration.lock, until);
        emit Resigned(msg.sender, until);
    }

    /// @inheritdoc IAuditBoard
    function snapshot(TaskId task) external {
        if (msg.sender != address(MARKET)) revert Errors.NotAllowed(address(MARKET), msg.sender);
        Audit storage audit = _audits[task];
        (audit.seats, audit.version) = (_table.lengths, _table.version);
    }

    // ------------------------------------------------------------------ draws

    /// @inheritdoc IAuditBoard
    function draw(TaskId task, bytes calldata header) external {
        (Audit storage audit, ITaskMarket.Task memory entry) = _undrawn(task);
        bytes32 due = Blockhash.blockHash(entry.drawBlock);
        bytes32 given = keccak256(header);
        if (given != due) revert Errors.WrongHeader(entry.drawBlock, due, given);
        bytes32 seed = keccak256(
            abi.encode(
                block.chainid,
                address(this),
                task,
                entry.root,
                entry.drawBlock,
                BlockHeader.getPrevRandao(header)
            )
        );
        Terms memory terms = MARKET.termsOf(task);
        audit.last = SegmentIndex.wrap(terms.segments);
        audit.matches = terms.matches;
        audit.drawnAt = uint64(block.timestamp);
        audit.attestUntil = uint64(block.timestamp) + terms.attestPeriod;
        emit Drawn(task, seed, msg.sender);
        audit.complete = _drawDuties(task, audit, seed, entry.drawBlock, terms);
        MARKET.payDrawer(task, msg.sender);
    }

    /// @inheritdoc IAuditBoard
    function missed(TaskId task) external {
        (Audit storage audit, ITaskMarket.Task memory entry) = _undrawn(task);
        if (!_outOfReach(entry.drawBlock)) revert Errors.DrawStillPossible(task, entry.drawBlock);
        if (audit.misses == MAX_MISSES) revert Errors.DrawLost(task);
        ++audit.misses;
        MARKET.fixDrawBlock(task);
        Terms memory terms = MARKET.termsOf(task);
        emit DrawMissed(task, entry.drawBlock, _segmentsPerVerifier(terms, audit.misses));
    }

    /// @inheritdoc IAuditBoard
    function attest(TaskId task, uint256 duty, bytes32 stepsRoot) external {
        Duty[] storage duties = _duties[task];
        if (duty >= duties.length) revert Errors.UnknownDuty(task, duty, duties.length);
        Duty storage entry = duties[duty];
        if (msg.sender != entry.verifier) revert Errors.NotAllowed(entry.verifier, msg.sender);
        if (entry.attested) revert Errors.AlreadyAttested(task, duty);
        uint64 until = _audits[task].attestUntil;
        if (block.timestamp > until) revert Errors.TooLate(until, block.timestamp);
        ITaskMarket.Status status = MARKET.taskOf(task).status;
        if (status != ITaskMarket.Status.Submitted) revert Errors.WrongStatus(task, status);
        entry.attested = true;
        emit Attested(task, duty, msg.sender, stepsRoot);
    }

    // ------------------------------------------------------------------ views

    /// @inheritdoc IAuditBoard
    function dutiesOf(TaskId task) external view returns (Duty[] memory) {
        return _duties[task];
    }

    /// @inheritdoc IAuditBoard
    function drawnAt(TaskId task) external view returns (uint64) {
        return _audits[task].drawnAt;
    }

    /// @inheritdoc IAuditBoard
    function missesOf(TaskId task) external view returns (uint8) {
        return _audits[task].misses;
    }

    /// @inheritdoc IAuditBoard
    function drawLost(TaskId task) external view returns (bool) {
        Audit storage audit = _audits[task];
        return audit.drawnAt == 0 && audit.misses == MAX_MISSES && _outOfReach(MARKET.taskOf(task).drawBlock);
    }

    /// @inheritdoc IAuditBoard
    function satisfied(TaskId task) external view returns (bool) {
        Audit memory audit = _audits[task];
        if (!audit.complete) return false;
        Duty[] memory duties = _duties[task];
        for (uint256 i; i < duties.length; ++i) {
            SegmentIndex segment = duties[i].segment;
            (uint256 drawn, uint256 attested) = _count(duties, segment);
            bool all = segment != audit.last && drawn < audit.matches;
            if (attested < (all ? drawn : audit.matches)) return false;
        }
        return true;
    }

    // ------------------------------------------------------------------ inside

    function _undrawn(TaskId task) private view returns (Audit storage audit, ITaskMarket.Task memory entry) {
        entry = MARKET.taskOf(task);
        if (entry.status != ITaskMarket.Status.Submitted) revert Errors.WrongStatus(task, entry.status);
        audit = _audits[task];
        if (audit.drawnAt != 0) revert Errors.AlreadyDrawn(task);
    }

    function _outOfReach(uint64 number) private view returns (bool) {
        return block.number > number && Blockhash.blockHash(number) == 0;
    }

    /// @dev q of the terms, raised by half for each miss, as long as V q stays within its bound.
    function _segmentsPerVerifier(Terms memory terms, uint8 misses) private pure returns (uint16 q) {
        q = terms.segmentsPerVerifier;
        uint256 most = TermsCheck.MAX_DRAWS / terms.verifiers;
        for (uint256 i; i < misses; ++i) {
            uint256 raised = uint256(q) + (q + 1) / 2;
            q = uint16(raised < most ? raised : most);
        }
    }

    /// @dev V draws of a slot and q segments each; every drawn verifier also replays segment K, as its first duty. While
    /// fewer than A verifiers were drawn, further slots are drawn for segment K alone.
    /// @return complete False if a draw stayed unfilled because too few slots are live.
    function _drawDuties(TaskId task, Audit storage audit, bytes32 seed, uint64 drawBlock, Terms memory terms)
        private
        returns (bool complete)
    {
        DrawWords.Stream memory stream = DrawWords.start(seed);
        Snapshot memory seats = _snapshotOf(audit);
        uint256 q = _segmentsPerVerifier(terms, audit.misses);
        SegmentIndex last = audit.last;
        Duty[] memory drawn = new Duty[](terms.verifiers * (q + 1));
        uint256 count;
        uint256 verifiers;
        complete = true;
        for (uint256 i; i < terms.verifiers; ++i) {
            address verifier = _drawVerifier(stream, seats, drawBlock);
            if (verifier == address(0)) return false;
            uint256 before = count;
            count = _add(task, drawn, count, verifier, last);
            if (count != before) ++verifiers;
            uint32[] memory segments = stream.distinct(terms.segments, q);
            for (uint256 j; j < segments.length; ++j) {
                count = _add(task, drawn, count, verifier, SegmentIndex.wrap(segments[j]));
            }
        }
        for (uint256 tries; verifiers < terms.matches && tries < MAX_TRIES; ++tries) {
            address verifier = _drawVerifier(stream, seats, drawBlock);
            if (verifier == address(0)) return false;
            uint256 before = count;
            count = _add(task, drawn, count, verifier, last);
            if (count != before) ++verifiers;
        }
    }

    function _snapshotOf(Audit storage audit) private view returns (Snapshot memory seats) {
        (seats.lengths, seats.version) = (audit.seats, audit.version);
        seats.slots = uint32(Seats.total(seats.lengths));
    }

    /// @dev The verifier of a uniform slot of those that were live at the post; who resigned since then, more than
    /// SETTLED_BLOCKS before the draw block, is passed over with the next number. A later resignation changes nothing: who
    /// knows the block's mixHash could choose among draws by it.
    function _drawVerifier(DrawWords.Stream memory stream, Snapshot memory seats, uint64 drawBlock)
        private
        view
        returns (address)
    {
        for (uint256 tries; tries < MAX_TRIES; ++tries) {
            uint64 number = _table.holderAt(seats.version, seats.lengths, stream.below(seats.slots));
            Registration storage registration = _registrations[number];
            uint64 resignedIn = registration.resignedIn;
            if (resignedIn == 0 || resignedIn + SETTLED_BLOCKS >= drawBlock) return registration.verifier;
        }
        return address(0);
    }

    /// @dev Adds a duty unless this verifier has it already.
    function _add(TaskId task, Duty[] memory drawn, uint256 count, address verifier, SegmentIndex segment)
        private
        returns (uint256)
    {
        for (uint256 i; i < count; ++i) {
            if (drawn[i].verifier == verifier && drawn[i].segment == segment) return count;
        }
        drawn[count] = Duty(verifier, segment, false);
        _duties[task].push(drawn[count]);
        emit DutyDrawn(task, count, verifier, segment);
        return count + 1;
    }

    function _count(Duty[] memory duties, SegmentIndex segment)
        private
        pure
        returns (uint256 drawn, uint256 attested)
    {
        for (uint256 i; i < duties.length; ++i) {
            if (duties[i].segment != segment) continue;
            ++drawn;
            if (duties[i].attested) ++attested;
        }
    }
}
