// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Address} from "@openzeppelin/contracts/utils/Address.sol";

import {Evidence} from "../Evidence.sol";
import {IArbiter} from "../interfaces/IArbiter.sol";
import {IDisputeGame} from "../interfaces/IDisputeGame.sol";
import {IStakeVault} from "../interfaces/IStakeVault.sol";
import {ITaskMarket} from "../interfaces/ITaskMarket.sol";
import {DisputeErrors} from "../libraries/DisputeErrors.sol";
import {Proofs} from "../libraries/Proofs.sol";
import {Parameters} from "../types/Parameters.sol";

/// @title What the game keeps, whose turn it is, and how a game ends: dispute.md section 6.
/// @dev Records are packed: a game opens with two storage slots, the others are written when they are first needed.
abstract contract GameState is IDisputeGame {
    /// @notice One game. `claim` is 0 until a step is selected, `segmentRoot` unless blind; `moves` numbers the moves that take a
    /// head; `spent` is what the challenger's moves took so far, in seconds.
    struct Record {
        address challenger;
        Phase phase;
        Verdict verdict;
        uint8 depth;
        uint8 moves;
        uint32 segment;
        uint32 segmentSize;
        uint64 task;
        uint64 deadline;
        uint48 lock;
        uint24 step;
        uint8 demands;
        uint16 demandOpen;
        uint32 spent;
        bytes32 segmentRoot;
        bytes32 claim;
        bytes32 demandHash;
        bytes32 selection;
    }

    enum Kind {
        None,
        Steps,
        Trace
    }

    /// @notice One claim. `program` is 0 in a top frame: the task's; `size` of a trace is 0 until it has callees. `context` is
    /// that of a step tree: the key of a trace names its states, or its caller and its call. A step tree names the game that is rewarded for the segment,
    /// the block that gives it priority, and how many games in the segment go on: each holds a bond, so 24 bits count them.
    struct ClaimRecord {
        uint40 task;
        uint40 deadline;
        uint40 postedAt;
        uint32 size;
        Kind kind;
        uint32 first;
        uint40 priority;
        uint24 live;
        bytes32 root;
        bytes32 program;
        bytes32 context;
    }

    /// @notice What all games on a task share: figures of its terms, and how many moves the solver owes.
    struct Docket {
        uint32 solverClock;
        uint32 challengerClock;
        uint32 segmentSteps;
        uint32 stateTensors;
        uint32 pending;
        bool convicted;
    }

    ITaskMarket internal immutable MARKET;
    IStakeVault internal immutable VAULT;
    IArbiter internal immutable ARBITER;
    /// @notice Proves openings; made by this contract, which alone relies on it.
    Evidence internal immutable EVIDENCE;
    /// @notice Bond of one game.
    uint128 internal immutable BOND;
    /// @notice Most that a challenger earns on top of its bond.
    uint128 internal immutable REWARD_CAP;
    /// @notice Seconds in which a commitment may be opened.
    uint32 internal immutable OPENING_PERIOD;

    /// @notice Of a lost bond 1 / SOLVER_SHARE pays the solver's gas and re-execution; the rest burns, so that
    /// challenging oneself always costs.
    uint256 internal constant SOLVER_SHARE = 2;

    /// @notice The challenger's time in a whole game, in clocks of one move. A move may take a clock, and 96 demands are
    /// for trees of the greatest size: so a bond holds a payout for 32 clocks of its own time, and what the solver takes.
    uint64 internal constant CHALLENGER_CLOCKS = 32;

    uint256 internal _games;
    mapping(uint256 game => Record) internal _records;
    mapping(bytes32 key => ClaimRecord) internal _claims;
    mapping(uint256 task => Docket) internal _dockets;

    constructor(ITaskMarket market_, IStakeVault vault_, IArbiter arbiter_) {
        (MARKET, VAULT, ARBITER) = (market_, vault_, arbiter_);
        EVIDENCE = new Evidence(arbiter_);
        Parameters memory parameters = market_.parameters();
        BOND = parameters.challengeBond;
        REWARD_CAP = parameters.rewardCap;
        OPENING_PERIOD = parameters.openingPeriod;
    }

    // ------------------------------------------------------------------ whose turn

    /// @dev A game that goes on.
    function _live(uint256 id) internal view returns (Record storage g) {
        g = _records[id];
        if (g.phase == Phase.None) revert DisputeErrors.NoSuchGame(id);
        if (g.phase == Phase.Closed) revert DisputeErrors.GameIsClosed(id, g.verdict);
        _requireOpen(g.task);
    }

    function _requireOpen(uint256 task) internal view {
        if (_dockets[task].convicted) revert DisputeErrors.TaskConvicted(task);
    }

    /// @dev The side to move in a game that is not closed, and its last second. The challenger's clock starts at its own
    /// last move or, when that is later, at the claim it waited for; `spent` is what it had used up by then and has used
    /// since.
    function _turn(Record storage g) internal view returns (bool solver, uint64 deadline, uint64 spent) {
        deadline = g.deadline;
        if (g.demandOpen != 0 || g.phase == Phase.Split) return (true, deadline, 0);
        uint64 clock = _dockets[g.task].challengerClock;
        if (g.phase == Phase.Step || g.phase == Phase.Frame) {
            ClaimRecord storage c = _claims[_claimKey(g)];
            if (c.postedAt == 0) return (true, c.deadline, 0);
            uint64 fromClaim = c.postedAt + clock;
            if (fromClaim > deadline) deadline = fromClaim;
        }
        uint64 since = deadline - clock;
        uint64 most = since + CHALLENGER_CLOCKS * clock - g.spent;
        if (most < deadline) deadline = most;
        spent = g.spent + _now() - since;
    }

    /// @dev The claim that the game waits for or has reached.
    function _claimKey(Record storage g) internal view returns (bytes32) {
        if (g.step != 0) return g.claim;
        return g.segment == 0 ? bytes32(0) : Proofs.stepsKey(g.task, g.segment);
    }

    /// @dev The states around the step of a game in a top frame.
    function _requireStates(Record storage g, bytes32 before, bytes32 afterwards) internal view {
        Proofs.requireContext(g.claim, Proofs.traceKey(g.task, g.segment, g.step, before, afterwards));
    }

    /// @dev The program of a frame; 0 for a step tree.
    function _programOf(ClaimRecord storage c) internal view returns (bytes32 program) {
        if (c.kind != Kind.Trace) return 0;
        program = c.program;
        if (program == 0) program = MARKET.programOf(c.task);
    }

    // ------------------------------------------------------------------ what the solver owes

    /// @dev The last second of one more move of the solver. Claims, demands and splits on a task wait for each other: it
    /// re-executes one segment at a time, in the order of the requests. So it has one clock for each move that it owes,
    /// this one included; a game waits for one move at a time, so what it can be kept waiting is bounded by the games.
    function _enqueue(uint64 task) internal returns (uint64) {
        Docket storage d = _dockets[task];
        uint32 pending = d.pending + 1;
        d.pending = pending;
        return _now() + uint64(pending) * d.solverClock;
    }

    /// @dev The solver made a move that it owed. A game ends otherwise only by the solver's conviction.
    function _dequeue(uint64 task) internal {
        _dockets[task].pending -= 1;
    }

    // ------------------------------------------------------------------ moves

    /// @dev A move of the challenger that goes on.
    function _challengerMove(uint256 id, bytes32 head, Phase phase) internal returns (Record storage g) {
        uint64 spent;
        (g, spent) = _takeTurn(id, head, phase);
        // In time, so within the clocks of a game: 32 times 7 days.
        g.spent = uint32(spent);
        g.deadline = _now() + _dockets[g.task].challengerClock;
        ++g.moves;
    }

    /// @dev Its turn. A move that ends the game needs no more: it convicts or reverts.
    function _challengerTurn(uint256 id, bytes32 head, Phase phase) internal view returns (Record storage g) {
        (g,) = _takeTurn(id, head, phase);
    }

    /// @dev The challenger's turn, in time, in this phase, for this state of the game; and what it has spent with this move.
    function _takeTurn(uint256 id, bytes32 head, Phase phase)
        private
        view
        returns (Record storage g, uint64 spent)
    {
        g = _live(id);
        if (msg.sender != g.challenger) revert DisputeErrors.NotAllowed(g.challenger, msg.sender);
        bool solver;
        uint64 deadline;
        (solver, deadline, spent) = _turn(g);
        if (solver) revert DisputeErrors.NotYourTurn(solver);
        _requireInTime(deadline);
        _requirePhase(g, phase);
        _requireHead(id, g, head);
    }

    /// @dev The claim that a game has reached: the frame that it is in, or the step tree.
    function _reached(Record storage g) internal view returns (ClaimRecord storage) {
        return _claims[_claimKey(g)];
    }

    function _requireHead(uint256 id, Record storage g, bytes32 head) internal view {
        bytes32 due = _headOf(id, g);
        if (head != due) revert DisputeErrors.WrongHead(due, head);
    }

    /// @dev encoding.md section 6. Names what the game is about, how many moves led there, and the claim that it has reached:
    /// a re-organisation may bring another one in its place, of which the challenger said nothing.
    function _headOf(uint256 id, Record storage g) internal view returns (bytes32) {
        bytes32 key = _claimKey(g);
        bytes32 selection = g.phase == Phase.Split || g.phase == Phase.Block ? g.selection : bytes32(0);
        return keccak256(
            abi.encode(id, uint256(g.task), g.challenger, uint256(g.moves), key, _claims[key].root, selection)
        );
    }

    function _requirePhase(Record storage g, Phase due) internal view {
        if (g.phase != due) revert DisputeErrors.WrongPhase(due, g.phase);
    }

    function _requireInTime(uint64 deadline) internal view {
        if (block.timestamp > deadline) revert DisputeErrors.TooLate(deadline, block.timestamp);
    }

    function _requireSolver(uint256 task) internal view {
        address solver = MARKET.solverOf(task);
        if (msg.sender != solver) revert DisputeErrors.NotAllowed(solver, msg.sender);
    }

    function _now() internal view returns (uint64) {
        return uint64(block.timestamp);
    }

    // ------------------------------------------------------------------ evidence

    /// @dev Passes the present call on to EVIDENCE, whose functions have the game's layout, with
    /// (program, trace root) in the place of (game, head). What it reverts with, the move reverts with.
    function _proved(bytes4 selector, ClaimRecord storage c) internal view returns (bytes memory) {
        return Address.functionStaticCall(
            address(EVIDENCE), bytes.concat(selector, _programOf(c), c.root, msg.data[68:])
        );
    }

    // ------------------------------------------------------------------ ends

    /// @dev The solver is wrong or silent. Ends every game on the task: the others are moot. The reward is for the game on
    /// the segment that has priority, for what this one proved was its claim too: so nobody gains by repeating another's
    /// moves a little faster. If that one was dismissed, the reward is for this one: which of the others is the earliest is
    /// not kept.
    function _convict(uint256 id, Record storage g, Verdict verdict) internal {
        (uint256 task, address challenger) = (g.task, g.challenger);
        address rewarded = challenger;
        if (g.segment != 0) {
            Record storage first = _records[_claims[Proofs.stepsKey(task, g.segment)].first];
            if (first.phase != Phase.Closed) rewarded = first.challenger;
        }
        _dockets[task].convicted = true;
        _close(id, g, verdict, challenger);
        VAULT.release(g.lock, type(uint256).max);
        MARKET.convict(task, rewarded, REWARD_CAP);
    }

    /// @dev The challenger is silent: its bond is lost.
    function _dismiss(uint256 id, Record storage g) internal {
        address solver = MARKET.solverOf(g.task);
        if (g.segment != 0) --_claims[Proofs.stepsKey(g.task, g.segment)].live;
        _close(id, g, Verdict.ChallengerSilent, solver);
        (,, uint256 remaining,) = VAULT.lockOf(g.lock);
        VAULT.pay(g.lock, solver, remaining / SOLVER_SHARE);
        VAULT.burn(g.lock, type(uint256).max);
        MARKET.gameClosed(g.task);
    }

    function _close(uint256 id, Record storage g, Verdict verdict, address winner) internal {
        g.phase = Phase.Closed;
        g.verdict = verdict;
        g.demandOpen = 0;
        emit Ended(id, verdict, winner);
    }
}
