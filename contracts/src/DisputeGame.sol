// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Evidence} from "./Evidence.sol";
import {Claims} from "./dispute/Claims.sol";
import {Demands} from "./dispute/Demands.sol";
import {GameState} from "./dispute/GameState.sol";
import {Judgments} from "./dispute/Judgments.sol";
import {Splits} from "./dispute/Splits.sol";
import {IArbiter} from "./interfaces/IArbiter.sol";
import {IDisputeGame} from "./interfaces/IDisputeGame.sol";
import {IStakeVault} from "./interfaces/IStakeVault.sol";
import {ITaskMarket} from "./interfaces/ITaskMarket.sol";
import {DisputeErrors} from "./libraries/DisputeErrors.sol";
import {Proofs} from "./libraries/Proofs.sol";
import {InstructionOpening, Leaf} from "./types/Openings.sol";

/// @title The game from a segment down to one element: dispute.md section 6.
/// @notice Opening a game, the way down (segment, step, call), and its end by time. Claims, demands, splits and
/// judgments are rooms of their own under `dispute/`.
contract DisputeGame is Claims, Demands, Splits, Judgments {
    /// @notice Segment of a commitment made before the segment is known.
    uint32 private constant SEGMENT_UNKNOWN = type(uint32).max;
    uint8 private constant MAX_DEPTH = 8;

    /// @notice A priority commitment: the bond's lock, its last second, the block that holds it.
    struct Commitment {
        uint48 lock;
        uint64 until;
        uint64 number;
    }

    /// @dev Per account, so that nobody can take another's commitment by copying it.
    mapping(address account => mapping(bytes32 commitment => Commitment)) private _commitments;

    constructor(ITaskMarket market_, IStakeVault vault_, IArbiter arbiter_)
        GameState(market_, vault_, arbiter_)
    {}

    // ------------------------------------------------------------------ opening

    /// @inheritdoc IDisputeGame
    function commit(bytes32 commitment) external override {
        Commitment storage c = _commitments[msg.sender][commitment];
        if (c.until != 0) revert DisputeErrors.AlreadyCommitted(commitment);
        c.until = _now() + OPENING_PERIOD;
        c.number = uint64(block.number);
        c.lock = uint48(VAULT.lock(msg.sender, BOND));
        emit Committed(commitment, msg.sender, BOND);
    }

    /// @inheritdoc IDisputeGame
    function reclaim(bytes32 commitment) external override {
        Commitment memory c = _commitments[msg.sender][commitment];
        if (c.until == 0) revert DisputeErrors.NotCommitted(commitment);
        if (block.timestamp <= c.until) revert DisputeErrors.TooEarly(c.until, block.timestamp);
        delete _commitments[msg.sender][commitment];
        VAULT.release(c.lock, type(uint256).max);
    }

    /// @inheritdoc IDisputeGame
    function challenge(
        uint256 task,
        uint32 segment,
        bytes32 salt,
        Leaf calldata before,
        Leaf calldata afterwards
    ) external override returns (uint256 game) {
        Record storage g;
        uint64 priority;
        ITaskMarket.Played memory played;
        (game, g, priority, played) = _open(task, segment, salt);
        _enterSegment(game, g, segment, played.root, played.size, before, afterwards, priority);
    }

    /// @inheritdoc IDisputeGame
    function challengeBlind(uint256 task, bytes32 salt) external override returns (uint256 game) {
        Record storage g;
        ITaskMarket.Played memory played;
        (game, g,, played) = _open(task, SEGMENT_UNKNOWN, salt);
        g.phase = Phase.Segment;
        (g.segmentRoot, g.segmentSize) = (played.root, played.size);
    }

    // ------------------------------------------------------------------ the way down

    /// @inheritdoc IDisputeGame
    function selectSegment(
        uint256 game,
        bytes32 head,
        uint32 segment,
        Leaf calldata before,
        Leaf calldata afterwards
    ) external override {
        Record storage g = _challengerMove(game, head, Phase.Segment);
        // Its commitment named no segment: it has priority from now on.
        _enterSegment(
            game, g, segment, g.segmentRoot, g.segmentSize, before, afterwards, uint64(block.number)
        );
    }

    /// @inheritdoc IDisputeGame
    function selectStep(
        uint256 game,
        bytes32 head,
        uint32 step,
        Leaf calldata before,
        Leaf calldata afterwards
    ) external override {
        Record storage g = _challengerMove(game, head, Phase.Step);
        ClaimRecord storage steps = _claims[_claimKey(g)];
        _requireBetween(steps.root, steps.size, step, before, afterwards);
        // At most 2^16 steps.
        bytes32 key = Proofs.traceKey(g.task, g.segment, step, before.value, afterwards.value);
        (g.step, g.phase, g.claim) = (uint24(step), Phase.Frame, key);
        _request(g.task, key, Kind.Trace, 0, 0, 0);
        emit StepSelected(game, step, before.value, afterwards.value, key);
    }

    /// @inheritdoc IDisputeGame
    function selectCall(uint256 game, bytes32 head, InstructionOpening calldata) external override {
        Record storage g = _challengerMove(game, head, Phase.Frame);
        ClaimRecord storage caller = _reached(g);
        (uint32 n, bytes32 program, bytes32 call, uint32 leaves) =
            abi.decode(_proved(Evidence.selectCall.selector, caller), (uint32, bytes32, bytes32, uint32));
        uint8 depth = g.depth + 1;
        if (depth > MAX_DEPTH) revert DisputeErrors.TooDeep(MAX_DEPTH);
        bytes32 key = Proofs.calleeKey(_claimKey(g), call);
        // Edges of the callee are opened in the caller's trace.
        caller.size = leaves;
        (g.claim, g.depth) = (key, depth);
        _request(g.task, key, Kind.Trace, 0, program, 0);
        emit CallSelected(game, n, program, key);
    }

    // ------------------------------------------------------------------ ends

    /// @inheritdoc IDisputeGame
    function timeOut(uint256 game) external override {
        Record storage g = _live(game);
        (bool solver, uint64 deadline,) = _turn(g);
        if (block.timestamp <= deadline) revert DisputeErrors.TooEarly(deadline, block.timestamp);
        if (solver) _convict(game, g, Verdict.SolverSilent);
        else _dismiss(game, g);
    }

    /// @inheritdoc IDisputeGame
    function closeMoot(uint256 game) external override {
        Record storage g = _records[game];
        if (g.phase == Phase.None) revert DisputeErrors.NoSuchGame(game);
        if (g.phase == Phase.Closed) revert DisputeErrors.GameIsClosed(game, g.verdict);
        if (!_dockets[g.task].convicted) revert DisputeErrors.NotMoot(game);
        _close(game, g, Verdict.Moot, address(0));
        VAULT.release(g.lock, type(uint256).max);
        MARKET.gameClosed(g.task);
    }

    // ------------------------------------------------------------------ views

    /// @inheritdoc IDisputeGame
    function gameOf(uint256 game) external view override returns (Game memory view_) {
        Record storage g = _records[game];
        if (g.phase == Phase.None) return view_;
        bytes32 key = _claimKey(g);
        (view_.task, view_.challenger, view_.phase, view_.verdict) =
        (g.task, g.challenger, g.phase, g.verdict);
        (view_.depth, view_.demands, view_.demandOpen) = (g.depth, g.demands, g.demandOpen);
        (view_.segment, view_.step) = (g.segment, g.step);
        (view_.segmentRoot, view_.segmentSize) = (g.segmentRoot, g.segmentSize);
        // Nobody has the turn in a closed game: of whose clock its deadline was is not known any more.
        if (g.phase == Phase.Closed) view_.deadline = g.deadline;
        else (, view_.deadline,) = _turn(g);
        (view_.claim, view_.program) = (key, _programOf(_claims[key]));
        (view_.head, view_.demandHash, view_.selection) = (_headOf(game, g), g.demandHash, g.selection);
        (,, view_.bond,) = VAULT.lockOf(g.lock);
    }

    /// @inheritdoc IDisputeGame
    function games() external view override returns (uint256) {
        return _games;
    }

    // ------------------------------------------------------------------ steps of these moves

    /// @dev Uses up the caller's commitment and numbers the game; the first one on a task opens the docket. The market
    /// refuses a task that is over, has no checkpoint, or whose window is over.
    function _open(uint256 task, uint32 segment, bytes32 salt)
        private
        returns (uint256 id, Record storage g, uint64 priority, ITaskMarket.Played memory played)
    {
        bytes32 commitment =
            keccak256(abi.encode(block.chainid, address(this), task, segment, msg.sender, salt));
        Commitment memory c = _commitments[msg.sender][commitment];
        if (c.until == 0) revert DisputeErrors.NotCommitted(commitment);
        priority = c.number;
        if (c.number == block.number) revert DisputeErrors.SameBlock(block.number);
        _requireInTime(c.until);
        delete _commitments[msg.sender][commitment];
        played = MARKET.gameOpened(task);
        Docket storage d = _dockets[task];
        // Clocks of terms are at least one second.
        if (d.challengerClock == 0) {
            (d.solverClock, d.challengerClock) = (played.solverClock, played.challengerClock);
            (d.segmentSteps, d.stateTensors) = (played.segmentSteps, played.stateTensors);
        }
        id = ++_games;
        g = _records[id];
        // Task ids are counted from 1.
        (g.task, g.challenger, g.lock) = (uint64(task), msg.sender, c.lock);
        g.deadline = _now() + d.challengerClock;
        emit Challenged(id, task, msg.sender);
    }

    /// @dev Goes into a segment of the tree (root, size): its step tree is due. Of the games in a segment the one with the
    /// earliest commitment has priority, in one block the one that came first. Dismissed, it leaves its place to nobody who
    /// comes while others go on: they were there before.
    function _enterSegment(
        uint256 id,
        Record storage g,
        uint32 segment,
        bytes32 root,
        uint32 size,
        Leaf calldata before,
        Leaf calldata afterwards,
        uint64 priority
    ) private {
        _requireBetween(root, size, segment, before, afterwards);
        (g.segment, g.phase) = (segment, Phase.Step);
        bytes32 context = Proofs.between(before.value, afterwards.value);
        uint32 steps = _dockets[g.task].segmentSteps;
        bytes32 key = _claimKey(g);
        _request(g.task, key, Kind.Steps, steps + 1, 0, context);
        ClaimRecord storage c = _claims[key];
        uint24 live = c.live;
        if (live == 0 || priority < c.priority) {
            (c.first, c.priority) = (uint32(id), uint40(priority));
        }
        c.live = live + 1;
        emit SegmentSelected(id, segment, before.value, afterwards.value);
    }

    /// @dev Leaves number - 1 and number of a tree of states.
    function _requireBetween(
        bytes32 root,
        uint32 size,
        uint32 number,
        Leaf calldata before,
        Leaf calldata afterwards
    ) private view {
        if (number == 0 || number >= size) {
            revert DisputeErrors.NumberOutside(number, size - 1);
        }
        Proofs.requireLeaf(root, size, number - 1, before);
        Proofs.requireLeaf(root, size, number, afterwards);
    }
}
