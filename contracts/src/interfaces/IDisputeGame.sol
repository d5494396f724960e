// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {GameId, SegmentIndex, TaskId} from "../types/Ids.sol";
import {ChunkOpening, InstructionOpening, Leaf, Node} from "../types/Openings.sol";

/// @title The game from a segment down to one element.
/// @notice One challenger against the solver of a task; any number of games side by side. Claims (step trees, traces) belong
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

    enum Verdict {
        None,
        SolverFalse,
        SolverSilent,
        ChallengerSilent,
        Moot
    }

    /// @notice A game. `deadline` is the last second of the side to move; when the game is closed, one that it had before.
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
        bytes32 segmentRoot;
        bytes32 claim;
        bytes32 program;
        bytes32 head;
        bytes32 demandHash;
        bytes32 selection;
        uint256 bond;
    }

    struct Claim {
        bytes32 root;
        bytes32 program;
        bytes32 context;
        uint32 size;
        uint64 deadline;
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

    event Committed(bytes32 indexed commitment, address indexed challenger, uint256 bond);
    event Challenged(GameId indexed game, TaskId indexed task, address indexed challenger);
    event SegmentSelected(GameId indexed game, SegmentIndex segment, bytes32 before, bytes32 afterwards);
    event StepsPosted(bytes32 indexed claim, TaskId indexed task, SegmentIndex segment, bytes32 root);
    event StepSelected(GameId indexed game, uint32 step, bytes32 before, bytes32 afterwards, bytes32 claim);
    event TracePosted(bytes32 indexed claim, TaskId indexed task, bytes32 root);
    event CallSelected(GameId indexed game, uint32 n, bytes32 program, bytes32 claim);
    event Demanded(
        GameId indexed game, Tree tree, bytes32 root, uint32 treeSize, uint64 bytesTotal, DemandedNode[] nodes
    );
    event NodeRevealed(GameId indexed game, uint8 index, bytes32[] descendants);
    event LeafRevealed(GameId indexed game, uint8 index, bytes data);
    event ElementSelected(GameId indexed game, uint32 n, uint64 element, uint64 claimed);
    event Split(GameId indexed game, uint64[] words);
    event BlockSelected(GameId indexed game, uint32 lo, uint32 hi, uint64 word);
    event Judged(GameId indexed game, uint32 n, uint64 element, uint64 claimed, uint64 computed);
    event EdgeJudged(GameId indexed game, uint32 n, bytes32 claimed, bytes32 due);
    event Ended(GameId indexed game, Verdict verdict, address winner);

    /// @notice Priority: keccak256(abi.encode(chainid, this, task, segment, challenger, salt)), with segment 2^32 - 1 for "not yet
    /// known". Locks the bond; void (and the bond reclaimable) after the opening period. Opened in a later block. Of the games
    /// in a segment the earliest commitment that names it is rewarded, whichever game convicts; one that does not name it
    /// counts from its `selectSegment` on. Once that game was dismissed, the one that convicts is rewarded; when none is left
    /// in the segment, priority begins anew.
    function commit(bytes32 commitment) external;
    function reclaim(bytes32 commitment) external;

    /// @notice Opens a game on segment i: `before` is leaf i - 1, `afterwards` leaf i of the task's current segment tree.
    function challenge(
        TaskId task,
        SegmentIndex segment,
        bytes32 salt,
        Leaf calldata before,
        Leaf calldata afterwards
    ) external returns (GameId game);

    /// @notice Opens a game before the segment is known; demands then find it.
    function challengeBlind(TaskId task, bytes32 salt) external returns (GameId game);

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

    function selectStep(
        GameId game,
        bytes32 head,
        uint32 step,
        Leaf calldata before,
        Leaf calldata afterwards
    ) external;

    /// @notice Solver: the trace root of a requested frame.
    function expandTrace(bytes32 claim, bytes32 root) external;

    /// @notice Challenger: goes down into call instruction n of the current frame.
    function selectCall(GameId game, bytes32 head, InstructionOpening calldata call) external;

    /// @notice Challenger: names up to 16 nodes of one tree of the game, each proved to be in it; the solver must answer each.
    /// Claims, demands and splits that are due on one task wait for each other: each has a clock of its own.
    /// Tree.Segment belongs to phase Segment, Tree.Step to Step, the others to Frame, Tree.State to a top frame alone.
    /// @param value For Tree.Value and Tree.Trace. @param before, afterwards Only for Tree.State: the states around the step (their
    /// hash is the frame's context); the tree is that of `afterwards`.
    function demand(
        GameId game,
        bytes32 head,
        Tree tree,
        ValueOpening calldata value,
        bytes32 before,
        bytes32 afterwards,
        Node[] calldata nodes
    ) external;

    /// @notice Solver (or anyone who can): answers demanded node number `index` with its descendants (size > 1) or its leaf's
    /// bytes (size 1).
    function revealNode(
        GameId game,
        uint8 index,
        uint64 bytesTotal,
        DemandedNode[] calldata nodes,
        bytes32[] calldata descendants
    ) external;
    function revealLeaf(
        GameId game,
        uint8 index,
        uint64 bytesTotal,
        DemandedNode[] calldata nodes,
        bytes calldata data
    ) external;

    /// @notice Challenger: names an element of a reduction over long rows; the solver must then state block results.
    /// @param value Leaf `first` of the trace. @param claimed The chunk that holds the element.
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
    /// @param afterwards In a top frame the state after the step. @param call In a callee the bytes of the call.
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

    /// @notice Anyone: the side to move ran out of time.
    function timeOut(GameId game) external;

    /// @notice Anyone: the task was slashed in another game; returns the bond.
    function closeMoot(GameId game) external;

    function gameOf(GameId game) external view returns (Game memory);
    function claimOf(bytes32 claim) external view returns (Claim memory);
    function games() external view returns (uint256);
}
