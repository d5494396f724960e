// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {GameId, SegmentIndex, TaskId} from "../types/Ids.sol";
import {Address} from "@openzeppelin/contracts/utils/Address.sol";

import {Evidence} from "../Evidence.sol";
import {IArbiter} from "../interfaces/IArbiter.sol";
import {ICommitments} from "../interfaces/ICommitments.sol";
import {IStakeVault} from "../interfaces/IStakeVault.sol";
import {ITaskMarket} from "../interfaces/ITaskMarket.sol";
import {Proofs} from "../libraries/Proofs.sol";
import {Refusals} from "../libraries/Refusals.sol";
import {Credits} from "./Credits.sol";

/// @title The state of games, whose turn it is, and how a game ends: dispute.md section 6.
/// @dev Records are packed: opening a game writes two slots of its record, a blind one three; the others are
/// written when first needed.
abstract contract GameState is Credits {
    /// @notice One game.
    struct GameRecord {
        // ---- slot 0
        address challenger;
        Phase phase;
        Verdict verdict;
        uint8 depth;
        /// Number of moves that took a head.
        uint8 moves;
        SegmentIndex segment;
        /// Leaves of the tree at `segmentRoot`.
        uint32 segmentSize;
        // ---- slot 1
        uint40 task;
        uint48 lock;
        /// When the last move was made, not counting claims; before the first move, when the game got its
        /// place. 0 while the game waits for a place.
        uint40 since;
        /// Seconds of its clock that each side had used by then.
        uint40 solverSpent;
        uint40 challengerSpent;
        uint24 step;
        uint8 demands;
        /// One bit for each node of the demand that is not yet answered.
        uint16 demandOpen;
        // ---- slots 2 to 5
        /// Root of the segment tree if the game was opened blind, otherwise 0.
        bytes32 segmentRoot;
        /// Key of the frame's claim; 0 until a step is selected.
        bytes32 claim;
        bytes32 demandHash;
        bytes32 selection;
        // ---- slot 6, 128 bits are free
        /// Coin that each unanswered node of the demand carries.
        uint128 deposit;
    }

    /// @notice The kind of tree whose root a claim posts.
    enum Kind {
        None,
        Steps,
        Trace
    }

    /// @notice One claim.
    struct ClaimRecord {
        // ---- slot 0, 40 bits are free
        uint40 task;
        uint40 postedAt;
        /// Leaves of the tree; for a trace, 0 until one of its calls is selected.
        uint32 size;
        Kind kind;
        /// For a step tree: the game that is rewarded for the segment, and the block that gives it priority.
        uint32 first;
        uint40 priority;
        /// For a step tree: number of the segment's games that are in progress. Each holds a bond, so 24 bits
        /// suffice.
        uint24 live;
        // ---- slots 1 to 3
        bytes32 root;
        /// For a callee's trace; 0 in a top frame, whose program is the task's.
        bytes32 program;
        /// For a step tree: hash of the checkpoints around the segment. The key of a trace already fixes its
        /// states, or its caller and call.
        bytes32 context;
    }

    /// @notice What all games on a task share; figures of its terms first.
    struct Docket {
        // ---- slot 0, 16 bits are free
        /// Seconds that each side of a game has, including the replay allowance.
        uint40 clock;
        uint32 segmentSteps;
        uint32 stateTensors;
        /// Number of games that were opened, and of those that were dismissed or dropped.
        uint32 opened;
        uint32 dismissed;
        /// When the solver was convicted (0 before), and on which segment (0 if none was selected).
        uint40 convictedAt;
        SegmentIndex convicted;
    }

    ITaskMarket internal immutable MARKET;
    IStakeVault internal immutable VAULT;
    IArbiter internal immutable ARBITER;
    ICommitments internal immutable COMMITMENTS;
    /// @notice Proves openings; created by this contract, which is its only user.
    Evidence internal immutable EVIDENCE;
    /// @notice Wei for each byte of an answer's transaction, on top of its gas.
    uint64 internal immutable DATA_FEE;

    /// @notice A 1 / SOLVER_SHARE part of a lost bond pays for the solver's gas and re-execution. The rest
    /// burns, so that challenging oneself always costs something.
    uint256 internal constant SOLVER_SHARE = 2;

    /// @notice Games of a task that are played at once, in the order of their opening. The replay allowance
    /// is for this many; further games wait, and no clock runs in them.
    uint32 internal constant GAMES_AT_ONCE = 16;

    /// @notice The segment of a game that was opened blind and has selected none yet.
    SegmentIndex internal constant NO_SEGMENT = SegmentIndex.wrap(0);

    /// @notice Where the part of a move's calldata begins that EVIDENCE gets: after the selector, the game
    /// and the head.
    uint256 private constant FORWARDED = 4 + 2 * 32;

    uint256 internal _games;
    mapping(GameId game => GameRecord) internal _records;
    mapping(bytes32 key => ClaimRecord) internal _claims;
    mapping(TaskId task => Docket) internal _dockets;
    /// @dev Waiting games by their place in the task's order: a game is played once `place - GAMES_AT_ONCE`
    /// games were dismissed or dropped.
    mapping(TaskId task => mapping(uint256 place => GameId)) private _waiting;

    constructor(ITaskMarket market_, IStakeVault vault_, IArbiter arbiter_, ICommitments commitments_) {
        (MARKET, VAULT, ARBITER, COMMITMENTS) = (market_, vault_, arbiter_, commitments_);
        EVIDENCE = new Evidence(arbiter_);
        DATA_FEE = market_.parameters().dataFee;
    }

    // ------------------------------------------------------------------ whose turn

    /// @dev A game in progress that is being played.
    function _live(GameId id) internal view returns (GameRecord storage record) {
        record = _records[id];
        if (record.phase == Phase.None) revert Refusals.NoSuchGame(id);
        if (record.phase == Phase.Closed) revert Refusals.GameIsClosed(id, record.verdict);
        _requireOpen(_taskOf(record));
        if (record.since == 0) revert Refusals.GameWaits(id);
    }

    function _requireOpen(TaskId task) internal view {
        if (_dockets[task].convictedAt != 0) revert Refusals.TaskConvicted(task);
    }

    /// @dev The side to move in a game that is being played, since when, and the last second of its clock,
    /// which runs only while that side is to move. A claim posted after the solver's last second does not
    /// count: the solver has lost this game.
    function _turn(GameRecord storage record)
        internal
        view
        returns (bool solver, uint64 since, uint64 deadline)
    {
        uint64 clock = _dockets[_taskOf(record)].clock;
        since = record.since;
        deadline = since + clock - record.solverSpent;
        if (record.demandOpen != 0 || record.phase == Phase.Split) return (true, since, deadline);
        if (record.phase == Phase.Step || record.phase == Phase.Frame) {
            uint64 postedAt = _claims[_claimKey(record)].postedAt;
            if (postedAt == 0 || postedAt > deadline) return (true, since, deadline);
            if (postedAt > since) since = postedAt;
        }
        deadline = since + clock - record.challengerSpent;
    }

    /// @dev Key of the claim that the game waits for or has reached; 0 before a segment is selected.
    function _claimKey(GameRecord storage record) internal view returns (bytes32) {
        if (record.step != 0) return record.claim;
        return record.segment == NO_SEGMENT ? bytes32(0) : _stepsKey(record);
    }

    /// @dev The task of a game. The market numbers tasks one by one, so 40 bits hold their numbers.
    function _taskOf(GameRecord storage record) internal view returns (TaskId) {
        return TaskId.wrap(record.task);
    }

    /// @dev Key of the step tree of the game's segment.
    function _stepsKey(GameRecord storage record) internal view returns (bytes32) {
        return Proofs.stepsKey(_taskOf(record), record.segment);
    }

    /// @dev Requires that these are the states around the step of a game in a top frame.
    function _requireStates(GameRecord storage record, bytes32 before, bytes32 afterwards) internal view {
        bytes32 key = Proofs.traceKey(_taskOf(record), record.segment, record.step, before, afterwards);
        Proofs.requireContext(record.claim, key);
    }

    /// @dev The program of a frame; 0 for a step tree.
    function _programOf(ClaimRecord storage claim) internal view returns (bytes32 program) {
        if (claim.kind != Kind.Trace) return 0;
        program = claim.program;
        if (program == 0) program = MARKET.programOf(TaskId.wrap(claim.task));
    }

    // ------------------------------------------------------------------ places

    /// @dev Gives a new game the task's next place; it is played at once, or waits.
    function _takePlace(GameId id, GameRecord storage record) internal {
        TaskId task = _taskOf(record);
        Docket storage docket = _dockets[task];
        uint32 place = ++docket.opened;
        if (place <= GAMES_AT_ONCE + docket.dismissed) record.since = uint40(_now());
        else _waiting[task][place] = id;
    }

    /// @dev A game was dismissed or dropped, so the one that has waited longest is now played. (A conviction
    /// ends all games.)
    function _freePlace(TaskId task) private {
        Docket storage docket = _dockets[task];
        uint32 place = ++docket.dismissed + GAMES_AT_ONCE;
        if (place <= docket.opened) _records[_waiting[task][place]].since = uint40(_now());
    }

    // ------------------------------------------------------------------ moves

    /// @dev A move of the challenger that does not end the game.
    function _challengerMove(GameId id, bytes32 head, Phase phase)
        internal
        returns (GameRecord storage record)
    {
        uint64 since;
        (record, since) = _takeTurn(id, head, phase);
        record.solverSpent += uint40(since - record.since);
        record.challengerSpent += uint40(_now() - since);
        record.since = uint40(_now());
        ++record.moves;
    }

    /// @dev Records that the solver has answered a demand or split a row.
    function _solverMoved(GameRecord storage record) internal {
        record.solverSpent += uint40(_now() - record.since);
        record.since = uint40(_now());
    }

    /// @dev Checks the challenger's turn only. That is enough for a move that ends the game: it convicts or
    /// reverts.
    function _challengerTurn(GameId id, bytes32 head, Phase phase)
        internal
        view
        returns (GameRecord storage record)
    {
        (record,) = _takeTurn(id, head, phase);
    }

    /// @dev Requires the challenger's turn, in time, in this phase and for this state of the game. Returns
    /// since when it has been its turn.
    function _takeTurn(GameId id, bytes32 head, Phase phase)
        private
        view
        returns (GameRecord storage record, uint64 since)
    {
        record = _live(id);
        if (msg.sender != record.challenger) revert Refusals.NotAllowed(record.challenger, msg.sender);
        bool solver;
        uint64 deadline;
        (solver, since, deadline) = _turn(record);
        if (solver) revert Refusals.NotYourTurn();
        _requireInTime(deadline);
        _requirePhase(record, phase);
        _requireHead(id, record, head);
    }

    /// @dev Requires that the solver still has time in a game that waits for it.
    function _requireSolverInTime(GameRecord storage record) internal view {
        (,, uint64 deadline) = _turn(record);
        _requireInTime(deadline);
    }

    /// @dev The claim that a game has reached: the current frame's, or the step tree.
    function _reached(GameRecord storage record) internal view returns (ClaimRecord storage) {
        return _claims[_claimKey(record)];
    }

    function _requireHead(GameId id, GameRecord storage record, bytes32 head) internal view {
        bytes32 due = _headOf(id, record);
        if (head != due) revert Refusals.WrongHead(due, head);
    }

    /// @dev encoding.md section 6. Identifies what the game is about, how many moves led there, and the claim
    /// that it has reached: after a chain re-organisation it may be a different claim, about which the
    /// challenger said nothing.
    function _headOf(GameId id, GameRecord storage record) internal view returns (bytes32) {
        bytes32 key = _claimKey(record);
        bytes32 selection =
            record.phase == Phase.Split || record.phase == Phase.Block ? record.selection : bytes32(0);
        return keccak256(
            abi.encode(
                id,
                _taskOf(record),
                record.challenger,
                uint256(record.moves),
                key,
                _claims[key].root,
                selection
            )
        );
    }

    function _requirePhase(GameRecord storage record, Phase due) internal view {
        if (record.phase != due) revert Refusals.WrongPhase(due, record.phase);
    }

    function _requireInTime(uint64 deadline) internal view {
        if (block.timestamp > deadline) revert Refusals.TooLate(deadline, block.timestamp);
    }

    function _requireSolver(TaskId task) internal view {
        address solver = MARKET.solverOf(task);
        if (msg.sender != solver) revert Refusals.NotAllowed(solver, msg.sender);
    }

    function _now() internal view returns (uint64) {
        return uint64(block.timestamp);
    }

    // ------------------------------------------------------------------ evidence

    /// @dev Forwards the current call to the function of EVIDENCE with the move's name. Its parameters are
    /// the move's, with (program, trace root) instead of (game, head);
    /// tests/toolchain/test_contract_interfaces.py compares them. If that function reverts, the move reverts
    /// too, with the same error if there is one.
    function _proved(bytes4 selector, ClaimRecord storage claim) internal view returns (bytes memory) {
        return Address.functionStaticCall(
            address(EVIDENCE), bytes.concat(selector, _programOf(claim), claim.root, msg.data[FORWARDED:])
        );
    }

    // ------------------------------------------------------------------ ends

    /// @dev The solver is wrong or silent. Closes this game and makes every other game on the task moot. The
    /// reward goes to the game with priority on the segment, so nobody gains by repeating another's moves
    /// slightly faster. If that game was dismissed or dropped, this game gets the reward, because the next in
    /// priority is not recorded. This game also gets it if no segment was selected.
    function _convict(GameId id, GameRecord storage record, Verdict verdict) internal {
        (TaskId task, address challenger) = (_taskOf(record), record.challenger);
        address rewarded = challenger;
        if (record.segment != NO_SEGMENT) {
            GameRecord storage first = _records[GameId.wrap(_claims[_stepsKey(record)].first)];
            if (first.phase != Phase.Closed) rewarded = first.challenger;
        }
        Docket storage docket = _dockets[task];
        (docket.convictedAt, docket.convicted) = (uint40(_now()), record.segment);
        _close(id, record, verdict, challenger);
        VAULT.release(record.lock, type(uint256).max);
        MARKET.convict(task, rewarded);
    }

    /// @dev Ends the game without a conviction. The solver gets `toSolver` of the bond. The challenger gets
    /// the rest if `whole`; otherwise the rest burns.
    function _leave(GameId id, GameRecord storage record, Verdict verdict, uint256 toSolver, bool whole)
        internal
    {
        TaskId task = _taskOf(record);
        address solver = MARKET.solverOf(task);
        if (record.segment != NO_SEGMENT) --_claims[_stepsKey(record)].live;
        _close(id, record, verdict, solver);
        VAULT.pay(record.lock, solver, toSolver);
        if (whole) VAULT.release(record.lock, type(uint256).max);
        else VAULT.burn(record.lock, type(uint256).max);
        _freePlace(task);
        COMMITMENTS.dismissed(task);
        MARKET.gameClosed(task);
    }

    /// @dev Returns the deposits of unanswered nodes, before a game ends on the solver's turn.
    function _returnDeposits(GameRecord storage record) internal {
        // Clears the lowest bit each time.
        for (uint16 open = record.demandOpen; open != 0; open &= open - 1) {
            creditOf[record.challenger] += record.deposit;
        }
    }

    function _close(GameId id, GameRecord storage record, Verdict verdict, address winner) internal {
        record.phase = Phase.Closed;
        record.verdict = verdict;
        record.demandOpen = 0;
        emit Ended(id, verdict, winner);
    }
}
