// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../interfaces/IDisputeGame.sol";
import {ITaskMarket} from "../interfaces/ITaskMarket.sol";
import {GameId, SegmentIndex, TaskId} from "../types/Ids.sol";

/// @title What the contracts refuse, and why.
/// @notice Arguments come in one order: what the error is about (a task, an index), what was due, what came. An error named
/// `...Outside` has the index and the bound that it broke. What the arbiter and the trees refuse stands with them.
library Refusals {
    // ------------------------------------------------------------------ who

    /// @notice Only `due` may do this; `caller` tried.
    error NotAllowed(address due, address caller);
    /// @notice `caller` is none of the vault's modules.
    error NotModule(address caller);
    /// @notice The addresses were set before; they are never changed.
    error AlreadyInitialised();
    /// @notice There is no contract at `account`.
    error NoCode(address account);

    // ------------------------------------------------------------------ amounts

    /// @notice `account` needs `needed` free tokens and has `available`: deposit more.
    error NotEnoughFree(address account, uint256 needed, uint256 available);
    /// @notice The token delivered nothing: a deposit of 0, or a token that keeps everything.
    error NothingArrived(uint256 asked);
    /// @notice No such lock.
    error UnknownLock(uint256 lock);

    /// @notice The deposits of the demanded nodes are `due` wei; credit and value of the call together are `given`.
    error DepositTooSmall(uint256 due, uint256 given);

    // ------------------------------------------------------------------ terms

    /// @notice The field `field` must lie in [least, most]; it is `value`.
    error OutOfBounds(string field, uint256 least, uint256 most, uint256 value);
    /// @notice The field `field` must be a power of two; it is `value`.
    error NoPowerOfTwo(string field, uint256 value);
    /// @notice The field `field` must not be zero.
    error Zero(string field);

    // ------------------------------------------------------------------ time and order

    /// @notice Task ids are 1 ... tasks.
    error UnknownTask(TaskId task);
    /// @notice The task is in status `status`, where this cannot be done.
    error WrongStatus(TaskId task, ITaskMarket.Status status);
    /// @notice Too late: this was possible until `until`.
    error TooLate(uint64 until, uint256 time);
    /// @notice Too early: this is possible after `until`.
    error TooEarly(uint64 until, uint256 time);
    /// @notice `bidder` has bid on the task: its submitter cannot take it back any more.
    error HasBid(TaskId task, address bidder);
    /// @notice `openGames` games are open on the task; this waits for their end.
    error GamesOpen(TaskId task, uint32 openGames);
    /// @notice A bid must be lower than the best one by at least `undercut`.
    error BidTooHigh(uint128 best, uint256 undercut, uint128 price);

    // ------------------------------------------------------------------ commitments

    /// @notice A tree of `least` to `most` leaves is due; one of `given` came.
    error TreeSize(uint32 least, uint32 most, uint32 given);
    /// @notice Leaf `index` is not `leaf` in the tree of this root: the path leads to `computed`.
    error LeafNotInTree(uint32 index, bytes32 leaf, bytes32 root, bytes32 computed);
    /// @notice A proof came that this move has no use for.
    error UnexpectedProof();

    // ------------------------------------------------------------------ beacon

    /// @notice The key (x1, x0, y1, y0) is not a point of BN254's G2, or infinity.
    error NotAKey(uint256[4] key);
    /// @notice A round from `least` to `most` is due.
    error RoundOutside(uint64 least, uint64 most, uint64 round);
    /// @notice A signature has `due` bytes.
    error SignatureLength(uint256 due, uint256 given);
    /// @notice (x, y) is not a point of BN254's G1, infinity, or has a coordinate that is not reduced.
    error NotAPoint(uint256 x, uint256 y);
    /// @notice Of field element `element`: the inverse (0), the first root (1) or the other root (2) is not `given`.
    error WrongHint(uint256 element, uint256 hint, uint256 given);
    /// @notice The signature is of another round or key.
    error NotSigned(uint64 round);

    // ------------------------------------------------------------------ audit

    /// @notice The account is registered: one registration for each, until it leaves.
    error AlreadyRegistered(address account);
    /// @notice The account is not registered, or has resigned.
    error NotRegistered(address account);
    /// @notice The account has not resigned.
    error NotResigned(address account);
    /// @notice The account has a seat: its stake is bound until the task is over and the seat is released.
    error HasSeat(address account);
    /// @notice The account is not suspended.
    error NotSuspended(address account);
    /// @notice Level `level` has `most` registrations, and no place for another one.
    error LevelFull(uint256 level, uint256 most);
    /// @notice No round of the last day was shown to the beacon, `latest` is the last one: show it a new one.
    error StaleBeacon(uint64 latest, uint256 time);
    /// @notice The first draw of the queue is the one of task `first`, 0 if there is none: draws are executed in their order.
    error NotFirst(TaskId first, TaskId task);
    /// @notice A draw of the task is asked for: execute it first.
    error DrawPending(TaskId task);
    /// @notice Every seat of the task is attested, or in time.
    error NothingToRedraw(TaskId task);
    /// @notice The escrow has paid all draws that it may, and no account was silent.
    error NoDrawsLeft(TaskId task, uint8 most);
    /// @notice The task was not drawn yet.
    error NotDrawn(TaskId task);
    /// @notice The task has `seats` seats, numbered from 0.
    error UnknownSeat(TaskId task, uint256 seat, uint256 seats);
    /// @notice The seat was attested before.
    error AlreadyAttested(TaskId task, uint256 seat);
    /// @notice The seat is empty, or was released before.
    error NothingToRelease(TaskId task, uint256 seat);
    /// @notice Seat `seat` is not attested.
    error NotAttested(TaskId task, uint256 seat);
    /// @notice Digest and salt are not what the seat attests: `due` is the hash that it keeps, `given` theirs.
    error WrongAttestation(bytes32 due, bytes32 given);
    /// @notice Looks of the task were drawn, so its salts are revealed and nobody informs any more.
    error LooksDrawn(TaskId task);
    /// @notice The task has seats or looks that are awaited, or accusations that are not over.
    error NotAudited(TaskId task);
    /// @notice Nobody looks in this place: there is no such look, or nobody was found for it.
    error NoLook(TaskId task, uint256 look);
    /// @notice What the look looks at was revealed before.
    error AlreadyRevealed(TaskId task, uint256 look);
    /// @notice What the look looks at is not revealed, or not by this.
    error NotRevealed(TaskId task, uint256 look);
    /// @notice The lock of the seat or look `seat` is lost already.
    error AlreadyCaught(TaskId task, uint256 seat);
    /// @notice The seat or look `seat` has its lock: its look accuses it.
    error NotCaught(TaskId task, uint256 seat);
    /// @notice The look has accused, and that is not over.
    error AlreadyAccused(TaskId task, uint256 look);
    /// @notice The look has not accused, or not of this.
    error NotAccused(TaskId task, uint256 look);
    /// @notice The digest does not hash this chunk in this step: its turns and the step do not add up to a multiple of the thinning.
    error NotSelected(uint256 turns, uint256 step, uint256 thinning);
    /// @notice The game is not what the look needs: one that goes on, of this account, on the segment that is looked at.
    error NotOfLook(TaskId task, uint256 look, GameId game);
    /// @notice The accused seat plays against the solver in this game, which goes on.
    error GameGoesOn(GameId game);
    /// @notice No informed seat left a draw fee, or a draw has it.
    error NoPurse(TaskId task);
    /// @notice The escrow, or an informed seat, can pay another draw, or no seat is empty.
    error NotVoidable(TaskId task);
    /// @notice Every seat of the task is attested: settle.
    error NotStalled(TaskId task);

    // ------------------------------------------------------------------ juries

    /// @notice The task's terms have no juries.
    error NoJuries(TaskId task);
    /// @notice A jury of the task is open: wait for its verdict.
    error JuryOpen(TaskId task);
    /// @notice The task has no claim that a jury is to judge.
    error NoClaim(TaskId task);
    /// @notice The account in this seat has claimed as often as it may.
    error NoClaimsLeft(TaskId task, uint256 seat, uint256 limit);
    /// @notice The claimant has objected before.
    error AlreadyObjected(TaskId task);
    /// @notice There is no objection, or no use for one: nobody voted yes, or more than half of the jury voted no.
    error NotObjected(TaskId task);
    /// @notice The juror owes no opening: it did not vote yes, or has opened.
    error NothingToOpen(TaskId task, uint256 juror);

    // ------------------------------------------------------------------ whose turn

    /// @notice Games are numbered 1 ... games().
    error NoSuchGame(GameId game);
    /// @notice The game has ended.
    error GameIsClosed(GameId game, IDisputeGame.Verdict verdict);
    /// @notice The task's solver was convicted in another game: `closeMoot` returns the bond.
    error TaskConvicted(TaskId task);
    /// @notice The task's solver was not convicted: the game goes on.
    error NotMoot(GameId game);
    /// @notice The game is in phase `given`; this move belongs to phase `due`.
    error WrongPhase(IDisputeGame.Phase due, IDisputeGame.Phase given);
    /// @notice The solver is to move: it owes a claim, a demanded node or a split.
    error NotYourTurn();
    /// @notice The game waits until one that was opened earlier on its task is dismissed. No clock runs in it.
    error GameWaits(GameId game);
    /// @notice The move was made for another state of the game: read it again.
    error WrongHead(bytes32 due, bytes32 given);

    // ------------------------------------------------------------------ opening a game

    /// @notice The caller has made this commitment before.
    error AlreadyCommitted(bytes32 commitment);
    /// @notice The caller has not made this commitment, or used it up.
    error NotCommitted(bytes32 commitment);
    /// @notice The task is not convicted: nobody has a claim on its stake.
    error NotConvicted(TaskId task);
    /// @notice The game gives the seat no claim: it is another account's, of another task, was dismissed, or is about a segment that the
    /// seat does not have.
    error NotOfSeat(TaskId task, uint256 seat, GameId game);
    /// @notice The seat does not have the segment that its commitment names.
    error NotItsSegment(TaskId task, uint256 seat, SegmentIndex segment);
    /// @notice The seat has what the conviction owes it, or is owed nothing: it did not attest, or attested what was convicted.
    error NothingOwed(TaskId task, uint256 seat);
    /// @notice A commitment is opened in a later block than the one that holds it.
    error SameBlock(uint256 number);
    /// @notice Segments and steps are numbered from 1 to `last`.
    error NumberOutside(uint32 given, uint32 last);

    // ------------------------------------------------------------------ claims

    /// @notice No game has asked for this claim, or it is of the other kind.
    error NotRequested(bytes32 claim);
    /// @notice The claim was posted before; claims are final.
    error AlreadyPosted(bytes32 claim);
    /// @notice What was opened is not what the claim is about.
    error WrongContext(bytes32 due, bytes32 given);
    /// @notice Calls nest at most `limit` deep.
    error TooDeep(uint8 limit);

    // ------------------------------------------------------------------ proofs

    /// @notice The proof leads to another root.
    error WrongRoot(bytes32 due, bytes32 computed);
    /// @notice The opening is of another program.
    error WrongProgram(bytes32 due, bytes32 given);
    /// @notice Leaf `index` has `due` bytes (0: there is no such leaf).
    error WrongLength(uint256 index, uint256 due, uint256 given);
    /// @notice A list of `given` entries came.
    error WrongCount(uint256 due, uint256 given);
    /// @notice The instruction has opcode `given`.
    error WrongOpcode(uint16 due, uint16 given);
    /// @notice The instruction has no such operand, result or attribute.
    error Malformed();
    /// @notice The element lies in chunk `due`.
    error WrongChunk(uint64 due, uint32 given);

    // ------------------------------------------------------------------ demands and splits

    /// @notice A demand names 1 to `limit` nodes, and a game has at most that many demands.
    error LimitReached(uint256 limit, uint256 given);
    /// @notice What came is not the demand or selection that the game keeps as a hash.
    error WrongPreimage(bytes32 due, bytes32 given);
    /// @notice The node was answered before, or was not demanded.
    error NotDemanded(uint8 index);
    /// @notice Only a top frame lies between two states.
    error NoStates();
    /// @notice A node is answered by its descendants, a leaf by its bytes.
    error WrongKind(uint32 size);
    /// @notice The stated words fold to another word than the one that was selected.
    error WrongFold(uint64 due, uint64 folded);
    /// @notice The row is one block: judge the element.
    error NothingToSplit();
    /// @notice The part is (or is not) one block: use `judgeBlock` (or `selectBlock`).
    error PartSize(uint8 part, uint32 blocks);

    // ------------------------------------------------------------------ verdicts that are none

    /// @notice The claimed element is right.
    error ElementAgrees(uint64 bits);
    /// @notice The stated word is right.
    error BlockAgrees(uint64 word);
    /// @notice Both sides of the edge are the same value.
    error EdgeAgrees(bytes32 value);
}
