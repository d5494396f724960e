// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Evidence} from "./Evidence.sol";
import {Claims} from "./dispute/Claims.sol";
import {Demands} from "./dispute/Demands.sol";
import {GameState} from "./dispute/GameState.sol";
import {Judgments} from "./dispute/Judgments.sol";
import {Splits} from "./dispute/Splits.sol";
import {IArbiter} from "./interfaces/IArbiter.sol";
import {ICommitments} from "./interfaces/ICommitments.sol";
import {IDisputeGame} from "./interfaces/IDisputeGame.sol";
import {IStakeVault} from "./interfaces/IStakeVault.sol";
import {ITaskMarket} from "./interfaces/ITaskMarket.sol";
import {Proofs} from "./libraries/Proofs.sol";
import {Refusals} from "./libraries/Refusals.sol";
import {GameId, SegmentIndex, TaskId} from "./types/Ids.sol";
import {InstructionOpening, Leaf} from "./types/Openings.sol";

/// @title The game from a segment down to one element: dispute.md section 6.
/// @notice Opening a game, descending (segment, step, call), and ending it by timeout. Claims, demands,
/// splits and judgments have a file each under `dispute/`.
contract DisputeGame is Claims, Demands, Splits, Judgments {
    /// @notice Segment of a commitment made before the segment is known.
    SegmentIndex private constant SEGMENT_UNKNOWN = SegmentIndex.wrap(type(uint32).max);
    uint8 private constant MAX_DEPTH = 8;

    constructor(ITaskMarket market_, IStakeVault vault_, IArbiter arbiter_, ICommitments commitments_)
        GameState(market_, vault_, arbiter_, commitments_)
    {}

    // ------------------------------------------------------------------ opening

    /// @inheritdoc IDisputeGame
    function challenge(
        TaskId task,
        SegmentIndex segment,
        bytes32 salt,
        Leaf calldata before,
        Leaf calldata afterwards
    ) external override returns (GameId game) {
        GameRecord storage record;
        uint64 priority;
        ITaskMarket.Played memory played;
        (game, record, priority, played) = _open(task, segment, salt);
        _enterSegment(game, record, segment, played.root, played.size, before, afterwards, priority);
    }

    /// @inheritdoc IDisputeGame
    function challengeBlind(TaskId task, bytes32 salt) external override returns (GameId game) {
        GameRecord storage record;
        ITaskMarket.Played memory played;
        (game, record,, played) = _open(task, SEGMENT_UNKNOWN, salt);
        record.phase = Phase.Segment;
        (record.segmentRoot, record.segmentSize) = (played.root, played.size);
    }

    // ------------------------------------------------------------------ the way down

    /// @inheritdoc IDisputeGame
    function selectSegment(
        GameId game,
        bytes32 head,
        SegmentIndex segment,
        Leaf calldata before,
        Leaf calldata afterwards
    ) external override {
        GameRecord storage record = _challengerMove(game, head, Phase.Segment);
        // Its commitment named no segment: its priority starts now.
        _enterSegment(
            game,
            record,
            segment,
            record.segmentRoot,
            record.segmentSize,
            before,
            afterwards,
            uint64(block.number)
        );
    }

    /// @inheritdoc IDisputeGame
    function selectStep(
        GameId game,
        bytes32 head,
        uint32 step,
        Leaf calldata before,
        Leaf calldata afterwards
    ) external override {
        GameRecord storage record = _challengerMove(game, head, Phase.Step);
        ClaimRecord storage steps = _claims[_claimKey(record)];
        _requireBetween(steps.root, steps.size, step, before, afterwards);
        // At most 2^16 steps.
        TaskId task = _taskOf(record);
        bytes32 key = Proofs.traceKey(task, record.segment, step, before.value, afterwards.value);
        (record.step, record.phase, record.claim) = (uint24(step), Phase.Frame, key);
        _request(task, key, Kind.Trace, 0, 0, 0);
        emit StepSelected(game, step, before.value, afterwards.value, key);
    }

    /// @inheritdoc IDisputeGame
    function selectCall(GameId game, bytes32 head, InstructionOpening calldata) external override {
        GameRecord storage record = _challengerMove(game, head, Phase.Frame);
        ClaimRecord storage caller = _reached(record);
        (uint32 n, bytes32 program, bytes32 call, uint32 leaves) =
            abi.decode(_proved(Evidence.selectCall.selector, caller), (uint32, bytes32, bytes32, uint32));
        uint8 depth = record.depth + 1;
        if (depth > MAX_DEPTH) revert Refusals.TooDeep(MAX_DEPTH);
        bytes32 key = Proofs.calleeKey(_claimKey(record), call);
        // Edges of the callee are opened in the caller's trace, so its size is kept.
        caller.size = leaves;
        (record.claim, record.depth) = (key, depth);
        _request(_taskOf(record), key, Kind.Trace, 0, program, 0);
        emit CallSelected(game, n, program, key);
    }

    // ------------------------------------------------------------------ ends

    /// @inheritdoc IDisputeGame
    function timeOut(GameId game) external override {
        GameRecord storage record = _live(game);
        (bool solver,, uint64 deadline) = _turn(record);
        if (block.timestamp <= deadline) revert Refusals.TooEarly(deadline, block.timestamp);
        if (!solver) {
            (,, uint256 bond) = VAULT.lockOf(record.lock);
            return _leave(game, record, Verdict.ChallengerSilent, bond / SOLVER_SHARE, false);
        }
        _returnDeposits(record);
        _convict(game, record, Verdict.SolverSilent);
    }

    /// @inheritdoc IDisputeGame
    function drop(
        GameId game,
        TaskId task,
        SegmentIndex segment,
        address challenger,
        uint256 cost,
        uint64 time
    ) external override {
        address looks = MARKET.looks();
        if (msg.sender != looks) revert Refusals.NotAllowed(looks, msg.sender);
        GameRecord storage record = _live(game);
        _requirePhase(record, Phase.Step);
        (bool solver, uint64 since, uint64 deadline) = _turn(record);
        if (solver) revert Refusals.NotYourTurn();
        _requireInTime(deadline);
        // The solver may get less than a lost bond would give it, so the game must not hold up the task's
        // end, and with it the solver's payment, for a whole clock. All turns of the look count together.
        _requireInTime(since + time - record.challengerSpent);
        if (
            record.challenger != challenger || TaskId.unwrap(_taskOf(record)) != TaskId.unwrap(task)
                || record.segment != segment
        ) revert Refusals.NotAllowed(record.challenger, challenger);
        _leave(game, record, Verdict.Dropped, cost, true);
    }

    /// @inheritdoc IDisputeGame
    function closeMoot(GameId game) external override {
        GameRecord storage record = _records[game];
        if (record.phase == Phase.None) revert Refusals.NoSuchGame(game);
        if (record.phase == Phase.Closed) revert Refusals.GameIsClosed(game, record.verdict);
        if (_dockets[_taskOf(record)].convictedAt == 0) revert Refusals.NotMoot(game);
        _returnDeposits(record);
        _close(game, record, Verdict.Moot, address(0));
        VAULT.release(record.lock, type(uint256).max);
        MARKET.gameClosed(_taskOf(record));
    }

    // ------------------------------------------------------------------ views

    /// @inheritdoc IDisputeGame
    function gameOf(GameId game) external view override returns (Game memory view_) {
        GameRecord storage record = _records[game];
        if (record.phase == Phase.None) return view_;
        bytes32 key = _claimKey(record);
        (view_.task, view_.challenger, view_.phase, view_.verdict) =
        (_taskOf(record), record.challenger, record.phase, record.verdict);
        (view_.depth, view_.demands, view_.demandOpen) = (record.depth, record.demands, record.demandOpen);
        (view_.segment, view_.step) = (record.segment, record.step);
        (view_.segmentRoot, view_.segmentSize) = (record.segmentRoot, record.segmentSize);
        (view_.solverSpent, view_.challengerSpent) = (record.solverSpent, record.challengerSpent);
        // In a closed game nobody is to move, and in a waiting game no clock runs.
        if (record.phase != Phase.Closed) {
            if (record.since == 0) view_.deadline = type(uint64).max;
            else (,, view_.deadline) = _turn(record);
        }
        (view_.claim, view_.program) = (key, _programOf(_claims[key]));
        (view_.head, view_.demandHash, view_.selection) =
        (_headOf(game, record), record.demandHash, record.selection);
        (,, view_.bond) = VAULT.lockOf(record.lock);
        view_.deposit = record.deposit;
    }

    /// @inheritdoc IDisputeGame
    function convictionOf(TaskId task) external view override returns (uint64 time, SegmentIndex segment) {
        Docket storage docket = _dockets[task];
        return (docket.convictedAt, docket.convicted);
    }

    /// @inheritdoc IDisputeGame
    function games() external view override returns (uint256) {
        return _games;
    }

    // ------------------------------------------------------------------ steps of these moves

    /// @dev Uses up the caller's commitment and numbers the game; the first game on a task opens the docket.
    /// The market refuses a task that is neither Submitted nor Unpaid, or whose window is closed.
    function _open(TaskId task, SegmentIndex segment, bytes32 salt)
        private
        returns (GameId id, GameRecord storage record, uint64 priority, ITaskMarket.Played memory played)
    {
        uint48 lock;
        (lock, priority) = COMMITMENTS.open(task, segment, msg.sender, salt);
        played = MARKET.gameOpened(task);
        Docket storage docket = _dockets[task];
        // The terms' clock is at least one second.
        if (docket.clock == 0) {
            docket.clock = played.clock;
            (docket.segmentSteps, docket.stateTensors) = (played.segmentSteps, played.stateTensors);
        }
        id = GameId.wrap(++_games);
        record = _records[id];
        (record.task, record.challenger, record.lock) = (uint40(TaskId.unwrap(task)), msg.sender, lock);
        _takePlace(id, record);
        emit Challenged(id, task, msg.sender);
    }

    /// @dev Enters a segment of the tree (root, size); the solver must then post its step tree. Among the
    /// games in a segment, the one with the earliest commitment has priority; within one block, the one that
    /// entered first. If that game is dismissed or dropped while others remain, a later game gets priority
    /// only if its commitment is from an earlier block than that game's, because the others were there
    /// before.
    function _enterSegment(
        GameId id,
        GameRecord storage record,
        SegmentIndex segment,
        bytes32 root,
        uint32 size,
        Leaf calldata before,
        Leaf calldata afterwards,
        uint64 priority
    ) private {
        _requireBetween(root, size, SegmentIndex.unwrap(segment), before, afterwards);
        (record.segment, record.phase) = (segment, Phase.Step);
        bytes32 context = Proofs.between(before.value, afterwards.value);
        TaskId task = _taskOf(record);
        uint32 steps = _dockets[task].segmentSteps;
        bytes32 key = _claimKey(record);
        _request(task, key, Kind.Steps, steps + 1, 0, context);
        ClaimRecord storage claim = _claims[key];
        uint24 live = claim.live;
        if (live == 0 || priority < claim.priority) {
            (claim.first, claim.priority) = (uint32(GameId.unwrap(id)), uint40(priority));
        }
        claim.live = live + 1;
        emit SegmentSelected(id, segment, before.value, afterwards.value);
    }

    /// @dev Proves leaves `number` - 1 and `number` of a tree of states.
    function _requireBetween(
        bytes32 root,
        uint32 size,
        uint32 number,
        Leaf calldata before,
        Leaf calldata afterwards
    ) private view {
        if (number == 0 || number >= size) {
            revert Refusals.NumberOutside(number, size - 1);
        }
        Proofs.requireLeaf(root, size, number - 1, before);
        Proofs.requireLeaf(root, size, number, afterwards);
    }
}
