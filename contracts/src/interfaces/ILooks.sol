// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {GameId, TaskId} from "../types/Ids.sol";
import {Leaf} from "../types/Openings.sol";

/// @title How a seat or look may lose its lock: its salt was revealed, or its digest was not opened or is
/// false.
/// @notice Until looks are drawn, knowing a salt is worth half of the seat's lock. So an account that lets
/// others compute its digest must trust them with half of its lock. Once looks are drawn, the account of each
/// seat that is looked at opens its digest, and the looker compares. A look of level 1 repeats a segment of a
/// seat; one of level n + 1 repeats the look of level n in its slot. `look` is 32 level + slot.
interface ILooks {
    /// @notice A place in the states of a segment: a chunk of a tensor of state `step`, 0 ... C. `turns` and
    /// `depth` name the chunk's leaf in the tensor's tree (audit.md section 6).
    struct Place {
        uint32 step;
        uint32 tensor;
        uint32 turns;
        uint8 depth;
    }

    /// @notice An accusation, kept as keccak256(abi.encode(accusation)). `leaf` is the leaf of the chunk
    /// under the revealed salt.
    struct Accusation {
        Place place;
        bytes32 leaf;
        bytes32 segmentRoot;
    }

    /// @notice A chunk under a step tree: the chunk, the siblings of its leaf, the tensor in the state, and
    /// the state in the step tree.
    struct ChunkProof {
        bytes chunk;
        bytes32[] path;
        Leaf tensor;
        Leaf state;
    }

    /// @notice State of a look. `revealed` is keccak256(abi.encode(salt, segment root)). `accused` is the
    /// hash of the open accusation, 0 if there is none. `until` is the last second to answer, `lock` holds
    /// the accusation's bond, `game` is the game by which the accused account contests it (0 if none),
    /// `accusations` is the number of accusations so far, and `dropped` says that the look has dropped a game.
    struct Look {
        bytes32 revealed;
        bytes32 accused;
        uint40 until;
        uint48 lock;
        uint64 game;
        uint8 accusations;
        bool dropped;
    }

    /// @notice The informer revealed the salt of the seat's account, which is suspended; the seat is now
    /// empty. The informer got `paid`.
    event Informed(
        TaskId indexed task, uint256 indexed seat, address indexed account, address informer, uint256 paid
    );
    /// @notice The seat or look being checked has this salt, and this root for the segment.
    event Revealed(TaskId indexed task, uint256 indexed look, bytes32 salt, bytes32 segmentRoot);
    /// @notice The account did not open its digest: it lost its lock, of which the look's account got `paid`.
    event Unrevealed(
        TaskId indexed task, uint256 indexed look, address indexed account, address looker, uint256 paid
    );
    /// @notice The look's account says that the digest does not have this leaf. An answer is due by `until`.
    event Accused(TaskId indexed task, uint256 indexed look, Accusation accusation, uint64 until);
    /// @notice The digest has the leaf: the bond goes to the accused account.
    event Answered(TaskId indexed task, uint256 indexed look);
    /// @notice The accused account plays against the solver: while that game is in progress, this accusation
    /// takes no lock.
    event Contested(TaskId indexed task, uint256 indexed look, GameId indexed game);
    /// @notice The account gave no answer: it lost its lock, of which the look's account got `paid` (0 if
    /// another look had already taken the lock).
    event Unanswered(
        TaskId indexed task, uint256 indexed look, address indexed account, address looker, uint256 paid
    );
    /// @notice The task was convicted, or its data are withheld: the accusation is void.
    event Moot(TaskId indexed task, uint256 indexed look);

    // ------------------------------------------------------------------ informing

    /// @notice Commits the caller to inform in a later block, so that nobody can copy a salt out of a pending
    /// transaction.
    /// @param commitment keccak256(abi.encode(chain id, this contract, task, seat, caller, salt)).
    function commitInforming(bytes32 commitment) external;

    /// @notice Anyone who committed to it in an earlier block: "this is the seat's salt". Takes half of the
    /// seat's lock (`IAuditBoard.caught`) while the task is Submitted and the round of the first looks is not
    /// yet published.
    /// @param digest The digest that the seat attested.
    /// @param salt The salt whose hash the seat attested.
    function inform(TaskId task, uint256 seat, bytes32 digest, bytes32 salt) external;

    // ------------------------------------------------------------------ looks

    /// @notice Opens the digest of the seat or look being checked, within `moveTime` of the latest draw that
    /// picked looks. In practice its account does this, since the secret is needed.
    /// @param secret The secret that the salt is derived from.
    /// @param digest The digest that was attested.
    /// @param segmentRoot Root of the segment's step tree under the salt.
    /// @param path Path from the segment root to the digest.
    function reveal(
        TaskId task,
        uint256 look,
        bytes32 secret,
        bytes32 digest,
        bytes32 segmentRoot,
        bytes32[] calldata path
    ) external;

    /// @notice Anyone: the digest was not opened in time. Its account loses its lock; half goes to the look's
    /// account.
    function takeUnrevealed(TaskId task, uint256 look) external;

    /// @notice The look's account, once it has attested: "the seat or look I check has a different chunk here
    /// than the solver". The chunk is proved under the step tree that the solver posted. Locks `gameCost`
    /// until the accusation is closed. At most 5 accusations per look, one at a time.
    /// @param game The caller's game that obtained the step tree. The game is now dropped
    /// (`IDisputeGame.drop`). 0 if there is none. A look drops one game, in the caller's turn, and only while
    /// the caller's turns in the game have taken at most `moveTime` together. A turn begins when the game
    /// gets a place among the games that are played, when the step tree is posted, or with the latest move in
    /// the game, whichever is latest. After that time the caller may still accuse with 0, but must play the
    /// game on or lose its bond.
    /// @param salt The revealed salt.
    /// @param segmentRoot The revealed segment root.
    function accuse(
        TaskId task,
        uint256 look,
        GameId game,
        bytes32 salt,
        bytes32 segmentRoot,
        Place calldata place,
        ChunkProof calldata proof
    ) external;

    /// @notice The look's account, if nobody can be accused any more: the seat or look that it checks has
    /// already lost its lock, or the task is Unpaid. Drops the caller's game that asked for the step tree, as
    /// `accuse` does: once per look, and within the same time.
    function drop(TaskId task, uint256 look, GameId game) external;

    /// @notice Anyone, in time: proves that the leaf is in the digest of the accused account, by the siblings
    /// in the trees of tensor, state and steps. The accusation's bond goes to the accused account.
    function answer(
        TaskId task,
        uint256 look,
        Accusation calldata accusation,
        bytes32[] calldata chunk,
        bytes32[] calldata tensor,
        bytes32[] calldata state
    ) external;

    /// @notice The accused account, in time: the solver's commitment is false, and this game of the account
    /// is in progress. The game must be on the segment of the look, on an earlier one, or on none yet.
    /// Until the game ends, nobody can take the lock because of this accusation.
    function contest(TaskId task, uint256 look, GameId game) external;

    /// @notice Anyone: the accusation was not answered in time. The accused account loses its lock; half goes
    /// to the look's account, whose bond is returned. If another look has already taken the lock, only the
    /// bond is returned.
    function takeUnanswered(TaskId task, uint256 look) external;

    /// @notice Anyone: closes an accusation that is moot. If the task was convicted, the bond goes to the
    /// accused account. If a jury found that data are withheld, the bond is returned.
    function closeMoot(TaskId task, uint256 look) external;

    // ------------------------------------------------------------------ views

    /// @notice The block in which the account committed to inform; 0 if it has not, or has already informed.
    function committedIn(address informer, bytes32 commitment) external view returns (uint256);

    /// @notice State of a look. Before the digest that it checks is opened, all but `dropped` is zero.
    function lookOf(TaskId task, uint256 look) external view returns (Look memory);

    /// @notice Number of the task's open accusations.
    function openAccusations(TaskId task) external view returns (uint256);

    /// @notice Last second for the latest answer, past or still due; 0 if there was no accusation. Challenges
    /// are accepted until then, so that an accused account can contest. Before then the task can end only by
    /// a conviction.
    function answersUntil(TaskId task) external view returns (uint64);
}
