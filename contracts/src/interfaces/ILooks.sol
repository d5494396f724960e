// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {GameId, TaskId} from "../types/Ids.sol";
import {Leaf} from "../types/Openings.sol";

/// @title What a seat, or a look, may lose its lock for: a salt that was shown, a digest that was not opened, or is
/// false.
/// @notice A salt is as good as the lock until looks are drawn, so nobody can have others compute a digest without
/// trusting them with it. Then the account of each seat that is looked at opens its digest, and the looker compares. A
/// look of level 1 repeats a segment of a seat, one of level n + 1 the look of level n in its slot; `look` is 32 level
/// + slot.
interface ILooks {
    /// @notice A place in the states of a segment: a chunk of a tensor of state `step`, 0 ... C. `turns` and `depth` name the chunk's
    /// leaf in the tensor's tree (audit.md section 6).
    struct Place {
        uint32 step;
        uint32 tensor;
        uint32 turns;
        uint8 depth;
    }

    /// @notice What an accusation is kept as: keccak256(abi.encode(accusation)). `leaf` is the chunk's under the revealed salt.
    struct Accusation {
        Place place;
        bytes32 leaf;
        bytes32 segmentRoot;
    }

    /// @notice A chunk under a step tree: the chunk, the siblings of its leaf, the tensor in the state, the state in the step tree.
    struct ChunkProof {
        bytes chunk;
        bytes32[] path;
        Leaf tensor;
        Leaf state;
    }

    /// @notice Where a look stands. `revealed` is keccak256(abi.encode(salt, segment root)), `accused` the hash of the accusation that is
    /// open; 0: none. `until` is the last second of the answer, `game` what the accused seat plays, `accusations` how many there
    /// were.
    struct Look {
        bytes32 revealed;
        bytes32 accused;
        uint40 until;
        uint48 lock;
        uint64 game;
        uint8 accusations;
    }

    /// @notice The informer showed the salt of the seat's account, which is suspended; the seat is empty. It got `paid`.
    event Informed(
        TaskId indexed task, uint256 indexed seat, address indexed account, address informer, uint256 paid
    );
    /// @notice What the look looks at has this salt, and this root for the segment.
    event Revealed(TaskId indexed task, uint256 indexed look, bytes32 salt, bytes32 segmentRoot);
    /// @notice The account did not open its digest: it lost its lock, of which the look's account got `paid`.
    event Unrevealed(
        TaskId indexed task, uint256 indexed look, address indexed account, address looker, uint256 paid
    );
    /// @notice The look's account says that the digest does not have this leaf. An answer is due by `until`.
    event Accused(TaskId indexed task, uint256 indexed look, Accusation accusation, uint64 until);
    /// @notice The digest has the leaf: the bond is the accused account's.
    event Answered(TaskId indexed task, uint256 indexed look);
    /// @notice The accused account plays against the solver: until that is over no answer is due.
    event Contested(TaskId indexed task, uint256 indexed look, GameId indexed game);
    /// @notice The account had no answer: it lost its lock, of which the look's account got `paid`.
    event Unanswered(
        TaskId indexed task, uint256 indexed look, address indexed account, address looker, uint256 paid
    );
    /// @notice The task was convicted, or its data are withheld: the accusation is void.
    event Moot(TaskId indexed task, uint256 indexed look);

    // ------------------------------------------------------------------ informing

    /// @notice The caller will inform in a later block, so that nobody can copy a salt out of a transaction that waits.
    /// @param commitment keccak256(abi.encode(chain id, this contract, task, seat, caller, salt)).
    function commitInforming(bytes32 commitment) external;

    /// @notice Anyone who has committed to it in an earlier block: "this is the seat's salt". Takes half of the seat's
    /// lock (`IAuditBoard.caught`) while the task is Submitted and the round of the first looks not published.
    /// @param digest That the seat attested. @param salt Whose hash it attested.
    function inform(TaskId task, uint256 seat, bytes32 digest, bytes32 salt) external;

    // ------------------------------------------------------------------ looks

    /// @notice Opens the digest of what the look looks at, within `moveTime` of the draw that picked it. In practice its account: it needs
    /// the secret.
    /// @param secret Of which the salt is made. @param digest That was attested. @param segmentRoot Root of the segment's step tree under
    /// the salt. @param path From there to the digest.
    function reveal(
        TaskId task,
        uint256 look,
        bytes32 secret,
        bytes32 digest,
        bytes32 segmentRoot,
        bytes32[] calldata path
    ) external;

    /// @notice Anyone: it was not opened in time. Its account loses its lock, half of it to the look's account.
    function takeUnrevealed(TaskId task, uint256 look) external;

    /// @notice The look's account, once it has attested: "what I look at passed another chunk than the solver's in this place". The chunk is proved under the step
    /// tree that the solver has posted. Locks `gameCost` until it is answered, or not. At most 5 times a look, one at a time.
    /// @param game The caller's game that brought the step tree, which is dropped (`IDisputeGame.drop`); 0: there is none.
    /// @param salt That was revealed. @param segmentRoot That was revealed.
    function accuse(
        TaskId task,
        uint256 look,
        GameId game,
        bytes32 salt,
        bytes32 segmentRoot,
        Place calldata place,
        ChunkProof calldata proof
    ) external;

    /// @notice The look's account, where another look has taken the lock of what it looks at: nobody is left to accuse. Its game that asked
    /// for the step tree is dropped (`IDisputeGame.drop`).
    function drop(TaskId task, uint256 look, GameId game) external;

    /// @notice The accused account, in time: the leaf is in its digest, by its siblings in the trees of tensor, state and steps. The bond of
    /// the accusation is the account's.
    function answer(
        TaskId task,
        uint256 look,
        Accusation calldata accusation,
        bytes32[] calldata chunk,
        bytes32[] calldata tensor,
        bytes32[] calldata state
    ) external;

    /// @notice The accused account, in time: the solver's commitment is false, and this game of the account's, blind or on that segment or an
    /// earlier one, goes on. While it does nobody can take the lock.
    function contest(TaskId task, uint256 look, GameId game) external;

    /// @notice Anyone: the accusation was not answered in time. The accused account loses its lock, half of it to the look's account, whose
    /// bond goes back. Where another look has taken the lock only that.
    function takeUnanswered(TaskId task, uint256 look) external;

    /// @notice Anyone: the task was convicted while the accusation was open, so its bond is the accused account's. Or a jury found that data
    /// are withheld: it goes back.
    function closeMoot(TaskId task, uint256 look) external;

    // ------------------------------------------------------------------ views

    /// @notice The block in which the account committed to inform; 0 if it has not, or has informed.
    function committedIn(address informer, bytes32 commitment) external view returns (uint256);

    /// @notice Where a look stands; all zero before it is revealed.
    function lookOf(TaskId task, uint256 look) external view returns (Look memory);

    /// @notice Accusations of the task that are not over.
    function openAccusations(TaskId task) external view returns (uint256);

    /// @notice Last second of the latest answer that is due, or was; 0: there was no accusation. Until then challenges are taken, so that an
    /// accused account can contest.
    function answersUntil(TaskId task) external view returns (uint64);
}
