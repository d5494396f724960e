// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {GameId, SegmentIndex, TaskId} from "../types/Ids.sol";
import {ChunkOpening, InstructionOpening, Leaf, Node} from "../types/Openings.sol";

/// @title The game from a segment down to one element.
/// @notice One challenger against the solver of a task; any number of games, of which 16 a task are played at once, in the
/// order of their opening. Each side of a game has one clock (the terms' `clock` and `replayAllowance` together), which runs
/// while a move is due from it: so from the second in which it is played a game lasts at most twice that. A move in the last second counts. Claims (step trees, traces) belong
/// to the task and are shared by all games that reach them; every claim is posted at most once. A head names the state that
/// a move is made in: keccak256(abi.encode(game, task, challenger, moves, claim key, claim root, selection)), where `moves`
/// counts the moves that took a head, the root is 0 until it is posted, the selection is 0 outside of a split.
interface IDisputeGame {
    /// @notice Where a game stands. In `Step` and `Frame` it is the solver's turn until the claim is posted, then the
    /// challenger's; in `Split` it is the solver's; while a demand is open it is the solver's in any phase.
    enum Phase {
        None,
        Segment,
        Step,
        Frame,
        Split,
        Block,
        Closed
    }

    /// @notice Which tree a demand is about.
    enum Tree {
        Segment,
        Step,
        Trace,
        State,
        Value
    }

    /// @notice How a game ended; `None` while it goes on. `Dropped`: a look only asked for the step tree.
    enum Verdict {
        None,
        SolverFalse,
        SolverSilent,
        ChallengerSilent,
        Moot,
        Dropped
    }

    /// @notice A game. `deadline` is the last second of the side to move, 0 once the game is closed, 2^64 - 1 while it waits
    /// for a place. `solverSpent` and `challengerSpent` are the seconds that each had used up to the last move; a claim
    /// that was posted since counts from the next one on. `claim` is the key of the
    /// claim that the game waits for or has reached, `demandOpen` has a bit for each demanded node that was not answered,
    /// `deposit` is the coin that each of these carries.
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

    /// @notice A claim of a task. `postedAt` and `root` are 0 before it is posted. `program` is
    /// a frame's, 0 for a step tree; `context` is a step tree's, the hash of the checkpoints around the segment.
    struct Claim {
        bytes32 root;
        bytes32 program;
        bytes32 context;
        uint32 size;
        uint64 postedAt;
        TaskId task;
    }

    /// @notice What a demand names, kept between `demand` and `reveal` as keccak256(abi.encode(bytesTotal, nodes)).
    /// `bytesTotal` is the length of the value for a Value tree (leaf i then has min(1024, bytesTotal - 1024 i) bytes), 0 for
    /// trees of 32-byte leaves.
    struct DemandedNode {
        uint32 lo;
        uint32 size;
        bytes32 hash;
    }

    /// @notice The value whose tree a `Tree.Value` demand is about: result of the instruction. A `Tree.Trace` demand fills
    /// `instruction.program` alone (the chain learns the tree's size from it); leave all empty for other trees.
    struct ValueOpening {
        InstructionOpening instruction;
        Leaf value;
    }

    /// @notice The selected element of a reduction that is being split: blocks [lo, hi) fold to `word` (the claimed bits at
    /// the `top`). `instruction` is keccak256(instruction bytes); `words` is keccak256(abi.encode(words)), 0 while the solver
    /// is to move. Kept as keccak256(abi.encode(selection)).
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
    /// @notice The game is about this segment, which leads from state `before` to state `afterwards`. Its step tree is due.
    event SegmentSelected(GameId indexed game, SegmentIndex segment, bytes32 before, bytes32 afterwards);
    /// @notice The solver posted the root of a segment's step tree.
    event StepsPosted(bytes32 indexed claim, TaskId indexed task, SegmentIndex segment, bytes32 root);
    /// @notice The game is about this step, which leads from state `before` to state `afterwards`. The trace of its top frame
    /// is due under the key `claim`.
    event StepSelected(GameId indexed game, uint32 step, bytes32 before, bytes32 afterwards, bytes32 claim);
    /// @notice The solver posted the root of a frame's trace.
    event TracePosted(bytes32 indexed claim, TaskId indexed task, bytes32 root);
    /// @notice The game goes into call instruction `n`, which runs `program`. The trace of that frame is due under the key `claim`.
    event CallSelected(GameId indexed game, uint32 n, bytes32 program, bytes32 claim);
    /// @notice The solver owes an answer for each of these nodes of a tree. `bytesTotal` is the length of a value, 0 for other
    /// trees; each node carries `deposit` wei.
    event Demanded(
        GameId indexed game,
        Tree tree,
        bytes32 root,
        uint32 treeSize,
        uint64 bytesTotal,
        uint256 deposit,
        DemandedNode[] nodes
    );
    /// @notice Demanded node number `index` was answered with its descendants, four levels down.
    event NodeRevealed(GameId indexed game, uint8 index, bytes32[] descendants);
    /// @notice Demanded node number `index`, a leaf, was answered with its bytes.
    event LeafRevealed(GameId indexed game, uint8 index, bytes data);
    /// @notice The solver is to state block results for this element of instruction `n`, whose bits it claims to be `claimed`.
    event ElementSelected(GameId indexed game, uint32 n, uint64 element, uint64 claimed);
    /// @notice The solver stated the block results that fold to the selected word.
    event Split(GameId indexed game, uint64[] words);
    /// @notice The solver is to state results for the blocks [lo, hi), which fold to `word`.
    event BlockSelected(GameId indexed game, uint32 lo, uint32 hi, uint64 word);
    /// @notice An element (or, in a split, one of its blocks) of instruction `n` was computed: not `claimed` but `computed`.
    event Judged(GameId indexed game, uint32 n, uint64 element, uint64 claimed, uint64 computed);
    /// @notice Edge instruction `n` connects two unequal values: the solver stated `claimed` where `due` belongs.
    event EdgeJudged(GameId indexed game, uint32 n, bytes32 claimed, bytes32 due);
    /// @notice The game is closed. `winner` is zero if it was moot.
    event Ended(GameId indexed game, Verdict verdict, address winner);
    /// @notice An account took its credit in the chain's coin out.
    event CreditWithdrawn(address indexed account, uint256 amount);

    /// @notice Opens a game on segment i: `before` is leaf i - 1, `afterwards` leaf i of the task's current segment
    /// tree. Uses up the caller's commitment (`ICommitments`), of an earlier block. Of the games in a segment the
    /// earliest commitment that names it is rewarded, whichever game convicts; one that does not name it counts from
    /// its `selectSegment` on. Once that game was dismissed, the one that convicts is rewarded; when none is left in
    /// the segment, priority starts over.
    function challenge(
        TaskId task,
        SegmentIndex segment,
        bytes32 salt,
        Leaf calldata before,
        Leaf calldata afterwards
    ) external returns (GameId game);

    /// @notice Opens a game before the segment is known; demands then find it.
    function challengeBlind(TaskId task, bytes32 salt) external returns (GameId game);

    /// @notice Challenger in a blind game: as `challenge`, in the segment tree that the game was opened on.
    function selectSegment(
        GameId game,
        bytes32 head,
        SegmentIndex segment,
        Leaf calldata before,
        Leaf calldata afterwards
    ) external;

    /// @notice Solver: the step tree of a requested segment; leaf 0 and leaf C are proved to be r_{i-1} and r_i.
    function expandSteps(
        TaskId task,
        SegmentIndex segment,
        bytes32 root,
        Leaf calldata first,
        Leaf calldata last
    ) external;

    /// @notice Challenger: names a step of the posted step tree; `before` is leaf step - 1, `afterwards` leaf step.
    function selectStep(
        GameId game,
        bytes32 head,
        uint32 step,
        Leaf calldata before,
        Leaf calldata afterwards
    ) external;

    /// @notice Solver: the trace root of a requested frame.
    function expandTrace(bytes32 key, bytes32 root) external;

    /// @notice Challenger: goes down into call instruction n of the current frame.
    function selectCall(GameId game, bytes32 head, InstructionOpening calldata call) external;

    /// @notice Challenger: names up to 16 nodes of one tree of the game, each proved to be in it; the solver must answer each.
    /// Their deposits (`depositFor` at the block's base fee) are taken from the caller's credit and the call's value; what is left stays
    /// its credit. The deposit of a node that is answered goes to the solver, that of one that is not, once the game
    /// ends, back to the challenger.
    /// Tree.Segment belongs to phase Segment, Tree.Step to Step, the others to Frame, Tree.State to a top frame alone.
    /// @param value For Tree.Value and Tree.Trace.
    /// @param before Only for Tree.State: the state before the step.
    /// @param afterwards Only for Tree.State: the state after the step, whose tree is meant. The frame's key names both states.
    function demand(
        GameId game,
        bytes32 head,
        Tree tree,
        ValueOpening calldata value,
        bytes32 before,
        bytes32 afterwards,
        Node[] calldata nodes
    ) external payable;

    /// @notice Solver (or anyone who can): answers demanded node number `index`, over several leaves, with its descendants.
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

    /// @notice Solver (or anyone who can): answers demanded node number `index`, a leaf, with its bytes.
    /// @param bytesTotal The value's length, 0 for other trees, as in the event of the demand.
    /// @param nodes The demanded nodes, as in the event of the demand.
    function revealLeaf(
        GameId game,
        uint8 index,
        uint64 bytesTotal,
        DemandedNode[] calldata nodes,
        bytes calldata data
    ) external;

    /// @notice Challenger: names an element of a reduction over long rows; the solver must then state block results.
    /// @param value Leaf `first` of the trace.
    /// @param claimed The chunk that holds the element.
    function selectElement(
        GameId game,
        bytes32 head,
        InstructionOpening calldata instruction,
        uint64 element,
        Leaf calldata value,
        ChunkOpening calldata claimed
    ) external;

    /// @notice Solver: the block results (at most 128; each covers 128^level blocks) that fold to the selected word.
    function split(
        GameId game,
        bytes32 head,
        bytes calldata instruction,
        Selection calldata selection,
        uint64[] calldata words
    ) external;

    /// @notice Challenger: goes down into one part of a split that covers several blocks.
    function selectBlock(
        GameId game,
        bytes32 head,
        bytes calldata instruction,
        Selection calldata selection,
        uint64[] calldata words,
        uint8 part
    ) external;

    /// @notice Challenger: the part of the split that is one block is computed here; different words end the game.
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

    /// @notice Challenger: one element of a primitive is computed here; different bits end the game, equal bits revert.
    /// @param operands One entry for each operand; those that no chunk refers to are not looked at and may be empty.
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

    /// @notice Challenger: `input` instruction whose value is not the frame's input. `source` opens the input where it comes
    /// from: the state tree of s_{j-1}, the constants tree, or the caller's trace at the call's operand.
    /// @param before In a top frame the state before the step, in a callee the key of the caller's claim.
    /// @param afterwards In a top frame the state after the step.
    /// @param call In a callee the bytes of the call.
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

    /// @notice Challenger: `output` instruction whose operand is not the frame's output: the state tree of s_j, or the caller's
    /// trace at the call's results. Parameters as in `judgeInput`.
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

    /// @notice Anyone: the side to move ran out of time. A claim that was posted after the solver's last second is too late.
    function timeOut(GameId game) external;

    /// @notice Looks only: `challenger` has what it asked for, the step tree of the segment, in time, and plays no further. `cost` of its bond is
    /// the solver's, the rest goes back.
    function drop(GameId game, TaskId task, SegmentIndex segment, address challenger, uint256 cost) external;

    /// @notice Anyone: the task was slashed in another game; returns the bond.
    function closeMoot(GameId game) external;

    /// @notice Pays the caller its credit in the chain's coin.
    function withdrawCredit() external returns (uint256 amount);

    /// @notice Coin that an account may take out or pay deposits with: answered nodes' deposits for a solver, returned ones and change
    /// for a challenger.
    function creditOf(address account) external view returns (uint256);

    /// @notice Deposit of one node of a demand: twice the gas of its answer at `baseFee`, and its data fee.
    /// @param count Nodes of the demand.
    /// @param leafBytes Bytes of a leaf; 0 for an inner node.
    function depositFor(uint256 count, uint256 leafBytes, uint256 baseFee) external view returns (uint256);

    /// @notice Where the game stands; all zero for one that does not exist.
    function gameOf(GameId game) external view returns (Game memory);

    /// @notice The claim of this key (encoding.md section 5); all zero if no game asked for it.
    function claimOf(bytes32 key) external view returns (Claim memory);

    /// @notice When the task was convicted, 0 if it was not, and the segment that was false; 0 where none was selected.
    function convictionOf(TaskId task) external view returns (uint64 time, SegmentIndex segment);

    /// @notice Number of games; ids are 1 ... games().
    function games() external view returns (uint256);
}
