// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {GameId, SegmentIndex, TaskId} from "../types/Ids.sol";
import {ChunkOpening, InstructionOpening, Leaf, Node} from "../types/Openings.sol";

/// @title The game from a segment down to one element.
/// @notice One challenger plays against the solver of a task. A task can have any number of games; at most
/// 16 are played at once, in the order of their opening. Each side of a game has one clock (the terms'
/// `clock` plus `replayAllowance`), which runs while that side is to move. So a game lasts at most twice
/// that time, counted from the second in which it starts to be played. A move in the last second counts.
/// Claims (step trees, traces) belong to the task and are shared by all games that reach them; every claim
/// is posted at most once. A head identifies the state in which a move is made: keccak256(abi.encode(game,
/// task, challenger, moves, claim key, claim root, selection)). `moves` counts the moves that took a head,
/// the root is 0 until it is posted, and the selection is 0 outside a split.
interface IDisputeGame {
    /// @notice State of a game. In `Step` and `Frame` it is the solver's turn until the claim is posted, then
    /// the challenger's. In `Split` it is the solver's turn, in `Segment` and `Block` the challenger's. While
    /// a demand is open it is the solver's turn in any phase.
    enum Phase {
        None,
        Segment,
        Step,
        Frame,
        Split,
        Block,
        Closed
    }

    /// @notice The tree that a demand is about.
    enum Tree {
        Segment,
        Step,
        Trace,
        State,
        Value
    }

    /// @notice How a game ended; `None` while it is in progress. `Dropped`: a look wanted only the step tree.
    enum Verdict {
        None,
        SolverFalse,
        SolverSilent,
        ChallengerSilent,
        Moot,
        Dropped
    }

    /// @notice A game. `deadline` is the last second of the side to move: 0 once the game is closed, 2^64 - 1
    /// while it waits for a place. `solverSpent` and `challengerSpent` are the seconds that each side had
    /// used up to the last move. Posting a claim is no such move: the time that the solver took for it is
    /// added only with the next move. `claim` is the key of the claim that the game waits for or has
    /// reached, 0 before a segment is selected. `segmentRoot` and `segmentSize` are 0 unless the game was
    /// opened blind. `demandOpen` has a bit for each demanded node that is not yet answered; `deposit` is
    /// the amount of the chain's coin that each of these carries.
    struct Game {
        TaskId task;
        address challenger;
        Phase phase;
        Verdict verdict;
        uint8 depth;
        uint16 demands;
        uint16 demandOpen;
        SegmentIndex segment;
        uint32 step;
        uint32 segmentSize;
        uint64 deadline;
        uint64 solverSpent;
        uint64 challengerSpent;
        bytes32 segmentRoot;
        bytes32 claim;
        bytes32 program;
        bytes32 head;
        bytes32 demandHash;
        bytes32 selection;
        uint256 bond;
        uint256 deposit;
    }

    /// @notice A claim of a task. `postedAt` and `root` are 0 before it is posted. `program` is the frame's
    /// program, 0 for a step tree. `context` is the step tree's context, the hash of the checkpoints around
    /// the segment; 0 for a trace. `size` is the number of leaves, for a trace 0 until one of its calls is
    /// selected.
    struct Claim {
        bytes32 root;
        bytes32 program;
        bytes32 context;
        uint32 size;
        uint64 postedAt;
        TaskId task;
    }

    /// @notice A node that a demand names. The game keeps keccak256(abi.encode(bytesTotal, nodes)) of its
    /// latest demand. `bytesTotal` is the length of the value for a Value tree (leaf i then has min(1024,
    /// bytesTotal - 1024 i) bytes), and 0 for trees of 32-byte leaves.
    struct DemandedNode {
        uint32 lo;
        uint32 size;
        bytes32 hash;
    }

    /// @notice The value whose tree a `Tree.Value` demand is about: the instruction's first result. A
    /// `Tree.Trace` demand fills only `instruction.program`, from which the chain learns the tree's size.
    /// Leave everything empty for other trees.
    struct ValueOpening {
        InstructionOpening instruction;
        Leaf value;
    }

    /// @notice The selected element of a reduction that is being split. The blocks [lo, hi) fold to `word`
    /// (at the `top`: to the claimed bits). `instruction` is keccak256(instruction bytes); `words` is
    /// keccak256(abi.encode(words)), 0 while the solver is to move. Kept as keccak256(abi.encode(selection)).
    struct Selection {
        bytes32 instruction;
        uint64 element;
        uint32 lo;
        uint32 hi;
        uint64 word;
        bool top;
        bytes32 words;
    }

    /// @notice A game was opened.
    event Challenged(GameId indexed game, TaskId indexed task, address indexed challenger);
    /// @notice The game is about this segment, which leads from state `before` to state `afterwards`. It goes
    /// on once the solver has posted the segment's step tree.
    event SegmentSelected(GameId indexed game, SegmentIndex segment, bytes32 before, bytes32 afterwards);
    /// @notice The solver posted the root of a segment's step tree.
    event StepsPosted(bytes32 indexed claim, TaskId indexed task, SegmentIndex segment, bytes32 root);
    /// @notice The game is about this step, which leads from state `before` to state `afterwards`. It goes on
    /// once the solver has posted the trace of the step's top frame under the key `claim`.
    event StepSelected(GameId indexed game, uint32 step, bytes32 before, bytes32 afterwards, bytes32 claim);
    /// @notice The solver posted the root of a frame's trace.
    event TracePosted(bytes32 indexed claim, TaskId indexed task, bytes32 root);
    /// @notice The game descends into call instruction `n`, which runs `program`. It goes on once the solver
    /// has posted the trace of that frame under the key `claim`.
    event CallSelected(GameId indexed game, uint32 n, bytes32 program, bytes32 claim);
    /// @notice The solver must answer each of these nodes of a tree. `bytesTotal` is the length of a value, 0
    /// for other trees. Each node carries `deposit` wei.
    event Demanded(
        GameId indexed game,
        Tree tree,
        bytes32 root,
        uint32 treeSize,
        uint64 bytesTotal,
        uint256 deposit,
        DemandedNode[] nodes
    );
    /// @notice Demanded node `index` was answered with its descendants, four levels down.
    event NodeRevealed(GameId indexed game, uint8 index, bytes32[] descendants);
    /// @notice Demanded node `index`, a leaf, was answered with its bytes.
    event LeafRevealed(GameId indexed game, uint8 index, bytes data);
    /// @notice The solver must state block results for this element of instruction `n`, whose bits it claims
    /// to be `claimed`.
    event ElementSelected(GameId indexed game, uint32 n, uint64 element, uint64 claimed);
    /// @notice The solver stated the block results that fold to the selected word.
    event Split(GameId indexed game, uint64[] words);
    /// @notice The solver must state results for the blocks [lo, hi), which fold to `word`.
    event BlockSelected(GameId indexed game, uint32 lo, uint32 hi, uint64 word);
    /// @notice An element of instruction `n` (or, in a split, one of its blocks) was computed: the solver
    /// claimed `claimed`, but the result is `computed`.
    event Judged(GameId indexed game, uint32 n, uint64 element, uint64 claimed, uint64 computed);
    /// @notice Edge instruction `n` connects two unequal values: the solver stated `claimed` where the value
    /// comes in, but the value where it comes from is `due`, which the solver stated or the terms fix.
    event EdgeJudged(GameId indexed game, uint32 n, bytes32 claimed, bytes32 due);
    /// @notice The game is closed. `winner` is zero if the game was moot.
    event Ended(GameId indexed game, Verdict verdict, address winner);
    /// @notice An account withdrew its credit in the chain's coin.
    event CreditWithdrawn(address indexed account, uint256 amount);

    /// @notice Opens a game on segment i of the task's current segment tree: `before` is leaf i - 1,
    /// `afterwards` leaf i. Uses up the caller's commitment (`ICommitments`), which must be from an earlier
    /// block. Of the games in a segment, the one with the earliest commitment has priority: it is rewarded,
    /// whichever game convicts. A game whose commitment names no segment counts from its `selectSegment` on.
    /// If the game with priority was dismissed or dropped, the game that convicts is rewarded. When no game
    /// is left in the segment, priority starts over.
    function challenge(
        TaskId task,
        SegmentIndex segment,
        bytes32 salt,
        Leaf calldata before,
        Leaf calldata afterwards
    ) external returns (GameId game);

    /// @notice Opens a game before the segment is known, with a commitment that names none. The challenger
    /// then finds the segment by demands.
    function challengeBlind(TaskId task, bytes32 salt) external returns (GameId game);

    /// @notice Challenger in a blind game: selects a segment as in `challenge`, in the segment tree on which
    /// the game was opened.
    function selectSegment(
        GameId game,
        bytes32 head,
        SegmentIndex segment,
        Leaf calldata before,
        Leaf calldata afterwards
    ) external;

    /// @notice Solver: posts the step tree of a requested segment; leaf 0 and leaf C are proved to be r_{i-1}
    /// and r_i.
    function expandSteps(
        TaskId task,
        SegmentIndex segment,
        bytes32 root,
        Leaf calldata first,
        Leaf calldata last
    ) external;

    /// @notice Challenger: names a step of the posted step tree; `before` is leaf step - 1, `afterwards` leaf
    /// step.
    function selectStep(
        GameId game,
        bytes32 head,
        uint32 step,
        Leaf calldata before,
        Leaf calldata afterwards
    ) external;

    /// @notice Solver: posts the trace root of a requested frame.
    function expandTrace(bytes32 key, bytes32 root) external;

    /// @notice Challenger: descends into call instruction n of the current frame.
    function selectCall(GameId game, bytes32 head, InstructionOpening calldata call) external;

    /// @notice Challenger: names up to 16 nodes of one tree of the game, each proved to be in it; the solver
    /// must answer every one. The deposits (`depositFor` at the block's base fee) are taken from the caller's
    /// credit and the call's value; the remainder stays its credit. The deposit of an answered node goes to
    /// the solver. The deposit of an unanswered node returns to the challenger when the game ends.
    /// Tree.Segment belongs to phase Segment, Tree.Step to Step, and the others to Frame; Tree.State only to
    /// a top frame.
    /// @param value For Tree.Value and Tree.Trace.
    /// @param before Only for Tree.State: the state before the step.
    /// @param afterwards Only for Tree.State: the state after the step, whose tree is demanded. The frame's
    /// key names both states.
    function demand(
        GameId game,
        bytes32 head,
        Tree tree,
        ValueOpening calldata value,
        bytes32 before,
        bytes32 afterwards,
        Node[] calldata nodes
    ) external payable;

    /// @notice Solver (or anyone who can): answers demanded node `index`, which covers several leaves, with
    /// its descendants.
    /// @param bytesTotal The value's length, 0 for other trees, as in the event of the demand.
    /// @param nodes The demanded nodes, as in the event of the demand.
    /// @param descendants Hashes four levels down, or at the leaves, from left to right.
    function revealNode(
        GameId game,
        uint8 index,
        uint64 bytesTotal,
        DemandedNode[] calldata nodes,
        bytes32[] calldata descendants
    ) external;

    /// @notice Solver (or anyone who can): answers demanded node `index`, a leaf, with its bytes.
    /// @param bytesTotal The value's length, 0 for other trees, as in the event of the demand.
    /// @param nodes The demanded nodes, as in the event of the demand.
    function revealLeaf(
        GameId game,
        uint8 index,
        uint64 bytesTotal,
        DemandedNode[] calldata nodes,
        bytes calldata data
    ) external;

    /// @notice Challenger: names an element of a reduction over long rows; the solver must then state block
    /// results.
    /// @param value The trace leaf of the instruction's result.
    /// @param claimed The chunk of that value that holds the element.
    function selectElement(
        GameId game,
        bytes32 head,
        InstructionOpening calldata instruction,
        uint64 element,
        Leaf calldata value,
        ChunkOpening calldata claimed
    ) external;

    /// @notice Solver: states block results that fold to the selected word or, in the first split, to the
    /// claimed bits. There are at most 128; each but the last covers the same number of blocks, a power of
    /// 128.
    function split(
        GameId game,
        bytes32 head,
        bytes calldata instruction,
        Selection calldata selection,
        uint64[] calldata words
    ) external;

    /// @notice Challenger: descends into one part of a split that covers several blocks.
    function selectBlock(
        GameId game,
        bytes32 head,
        bytes calldata instruction,
        Selection calldata selection,
        uint64[] calldata words,
        uint8 part
    ) external;

    /// @notice Challenger: has one part of the split, a single block, computed here. A different word ends
    /// the game.
    function judgeBlock(
        GameId game,
        bytes32 head,
        InstructionOpening calldata instruction,
        Selection calldata selection,
        uint64[] calldata words,
        uint8 part,
        Leaf[] calldata operands,
        ChunkOpening[] calldata chunks
    ) external;

    /// @notice Challenger: has one element of a primitive computed here. Different bits end the game; equal
    /// bits revert.
    /// @param operands One entry for each operand; entries that no chunk refers to are not read and may be
    /// empty.
    function judge(
        GameId game,
        bytes32 head,
        InstructionOpening calldata instruction,
        uint64 element,
        Leaf[] calldata operands,
        ChunkOpening[] calldata chunks,
        Leaf calldata value,
        ChunkOpening calldata claimed
    ) external;

    /// @notice Challenger: judges an `input` instruction whose value is not the frame's input. `source` opens
    /// the input where it comes from: the state tree of s_{j-1}, the constants tree, or the caller's trace at
    /// the call's operand.
    /// @param before In a top frame, the state before the step; in a callee, the key of the caller's claim.
    /// @param afterwards In a top frame, the state after the step.
    /// @param call In a callee, the bytes of the call.
    function judgeInput(
        GameId game,
        bytes32 head,
        InstructionOpening calldata instruction,
        Leaf calldata value,
        Leaf calldata source,
        bytes32 before,
        bytes32 afterwards,
        bytes calldata call
    ) external;

    /// @notice Challenger: judges an `output` instruction whose operand is not the frame's output. `target`
    /// opens the output in the state tree of s_j, or in the caller's trace at the call's results. Other
    /// parameters as in `judgeInput`.
    function judgeOutput(
        GameId game,
        bytes32 head,
        InstructionOpening calldata instruction,
        Leaf calldata value,
        Leaf calldata target,
        bytes32 before,
        bytes32 afterwards,
        bytes calldata call
    ) external;

    /// @notice Anyone: ends a game whose side to move ran out of time. A claim posted after the solver's last
    /// second is too late.
    function timeOut(GameId game) external;

    /// @notice Looks only: the solver has posted the step tree that `challenger` wanted, so the challenger's
    /// game ends. It must be the challenger's turn, within its clock, and its turns in the game together must
    /// have taken at most `time` seconds. The solver gets the amount `cost` out of the bond; the challenger
    /// gets the rest back.
    function drop(
        GameId game,
        TaskId task,
        SegmentIndex segment,
        address challenger,
        uint256 cost,
        uint64 time
    ) external;

    /// @notice Anyone: closes a game whose task was convicted in another game; returns the bond and the
    /// deposits of unanswered nodes.
    function closeMoot(GameId game) external;

    /// @notice Pays the caller its credit in the chain's coin.
    function withdrawCredit() external returns (uint256 amount);

    /// @notice The chain's coin that an account may withdraw or use for deposits: deposits of answered nodes
    /// for a solver, returned deposits and change for a challenger.
    function creditOf(address account) external view returns (uint256);

    /// @notice Deposit of one node of a demand: twice the gas cost of its answer at `baseFee`, plus its data
    /// fee. Each node of a demand carries the mean over the demand's nodes, rounded up.
    /// @param count Nodes of the demand.
    /// @param leafBytes Bytes of a leaf; 0 for an inner node.
    function depositFor(uint256 count, uint256 leafBytes, uint256 baseFee) external view returns (uint256);

    /// @notice State of the game; all zero if it does not exist.
    function gameOf(GameId game) external view returns (Game memory);

    /// @notice The claim with this key (encoding.md section 5); all zero if no game asked for it.
    function claimOf(bytes32 key) external view returns (Claim memory);

    /// @notice When the task was convicted (0 if it was not), and the segment that was false (0 if none was
    /// selected).
    function convictionOf(TaskId task) external view returns (uint64 time, SegmentIndex segment);

    /// @notice Number of games; ids are 1 ... games().
    function games() external view returns (uint256);
}
