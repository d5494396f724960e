// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../interfaces/IDisputeGame.sol";
import {ITaskMarket} from "../interfaces/ITaskMarket.sol";
import {GameId, SegmentIndex, TaskId} from "../types/Ids.sol";

/// @title The errors of the contracts.
/// @notice Arguments have this order: the subject of the error (a task, an index), the expected value, the
/// given value; only `NumberOutside` has the given number first. Errors of the arbiter and of the trees are
/// declared with them.
library Refusals {
    // ------------------------------------------------------------------ who

    /// @notice Only `due` may do this; `caller` tried. For `IDisputeGame.drop`: the game is not played by
    /// `caller`, or it is on another task or segment.
    error NotAllowed(address due, address caller);
    /// @notice `caller` is not one of the vault's modules.
    error NotModule(address caller);
    /// @notice The addresses were already set; they are never changed.
    error AlreadyInitialised();
    /// @notice There is no contract at `account`.
    error NoCode(address account);

    // ------------------------------------------------------------------ amounts

    /// @notice `account` needs `needed` free tokens and has only `available`: deposit more.
    error NotEnoughFree(address account, uint256 needed, uint256 available);
    /// @notice The token delivered nothing: a deposit of 0, or a token that keeps everything.
    error NothingArrived(uint256 asked);
    /// @notice No such lock.
    error UnknownLock(uint256 lock);

    /// @notice The deposits of the demanded nodes total `due` wei; the caller's credit and the call's value
    /// total `given`.
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
    /// @notice This cannot be done while the task is in status `status`.
    error WrongStatus(TaskId task, ITaskMarket.Status status);
    /// @notice Too late: this was possible until `until`. A challenge was possible until
    /// `ILooks.answersUntil` if that was later.
    error TooLate(uint64 until, uint256 time);
    /// @notice Too early: this is possible after `until`.
    error TooEarly(uint64 until, uint256 time);
    /// @notice `bidder` has bid on the task, so its submitter can no longer cancel it.
    error HasBid(TaskId task, address bidder);
    /// @notice `openGames` games on the task are open and must end first.
    error GamesOpen(TaskId task, uint32 openGames);
    /// @notice A bid must be lower than the best one by at least `undercut`.
    error BidTooHigh(uint128 best, uint256 undercut, uint128 price);

    // ------------------------------------------------------------------ commitments

    /// @notice The tree must have `least` to `most` leaves; it has `given`.
    error TreeSize(uint32 least, uint32 most, uint32 given);
    /// @notice Leaf `index` is not `leaf` in the tree of this root: the path leads to `computed`.
    error LeafNotInTree(uint32 index, bytes32 leaf, bytes32 root, bytes32 computed);
    /// @notice A proof was given that this move does not use.
    error UnexpectedProof();

    // ------------------------------------------------------------------ beacon

    /// @notice The key (x1, x0, y1, y0) is not a point of BN254's G2, or is infinity.
    error NotAKey(uint256[4] key);
    /// @notice The round must be from `least` to `most`.
    error RoundOutside(uint64 least, uint64 most, uint64 round);
    /// @notice A signature must have `due` bytes.
    error SignatureLength(uint256 due, uint256 given);
    /// @notice (x, y) is not a point of BN254's G1, is infinity, or has a coordinate that is not reduced.
    error NotAPoint(uint256 x, uint256 y);
    /// @notice For field element `element`, hint `hint` is not `given`: 0 is the inverse, 1 the first root, 2
    /// the other root.
    error WrongHint(uint256 element, uint256 hint, uint256 given);
    /// @notice The signature is for another round or by another key.
    error NotSigned(uint64 round);

    // ------------------------------------------------------------------ audit

    /// @notice The account is already registered; it may register again after it leaves.
    error AlreadyRegistered(address account);
    /// @notice The account is not registered, or has resigned.
    error NotRegistered(address account);
    /// @notice The account has not resigned.
    error NotResigned(address account);
    /// @notice The account has a seat, look or jury seat, which binds its stake until the seat is released.
    error HasSeat(address account);
    /// @notice The account is not suspended.
    error NotSuspended(address account);
    /// @notice Level `level` is full: it has `most` registrations.
    error LevelFull(uint256 level, uint256 most);
    /// @notice The beacon was shown no round of the last day; `latest` is the latest one shown (0 if none
    /// was). Show it a new round.
    error StaleBeacon(uint64 latest, uint256 time);
    /// @notice The first draw in the queue belongs to task `first` (0 if the queue is empty). Draws are
    /// executed in order.
    error NotFirst(TaskId first, TaskId task);
    /// @notice A draw of the task is pending: execute it first.
    error DrawPending(TaskId task);
    /// @notice Every seat of the task is attested or, once looks were requested, no look is awaited.
    error NothingToRedraw(TaskId task);
    /// @notice The task has had `most` draws; or its escrow has paid for `most`, and neither a silent account
    /// nor a purse pays for another.
    error NoDrawsLeft(TaskId task, uint8 most);
    /// @notice The task has not been drawn yet.
    error NotDrawn(TaskId task);
    /// @notice There is no such seat or look. The task has `seats` seats, numbered from 0.
    error UnknownSeat(TaskId task, uint256 seat, uint256 seats);
    /// @notice The seat is already attested.
    error AlreadyAttested(TaskId task, uint256 seat);
    /// @notice The seat is empty, was already released, or has lost its lock.
    error NothingToRelease(TaskId task, uint256 seat);
    /// @notice `seat`, a seat, look or juror, is not attested, or has already lost its lock. `inform` also
    /// refuses looks and jurors with this error.
    error NotAttested(TaskId task, uint256 seat);
    /// @notice Digest and salt do not match the seat's attestation: `due` is the stored hash, `given` theirs.
    error WrongAttestation(bytes32 due, bytes32 given);
    /// @notice The round of the task's first looks is published, so informing is over.
    error LooksDrawn(TaskId task);
    /// @notice The task has seats or looks that have not attested, a pending draw, or open accusations.
    error NotAudited(TaskId task);
    /// @notice There is no such look, or it has no account: nobody was found, or the account was silent.
    error NoLook(TaskId task, uint256 look);
    /// @notice The seat or look that this look checks was already revealed.
    error AlreadyRevealed(TaskId task, uint256 look);
    /// @notice The seat or look that this look checks is not revealed, or not with these values.
    error NotRevealed(TaskId task, uint256 look);
    /// @notice Seat or look `seat` has already lost its lock.
    error AlreadyCaught(TaskId task, uint256 seat);
    /// @notice Seat or look `seat` still has its lock, so the look that checks it can accuse it.
    error NotCaught(TaskId task, uint256 seat);
    /// @notice The look already has an open accusation.
    error AlreadyAccused(TaskId task, uint256 look);
    /// @notice The look has no open accusation, or a different one.
    error NotAccused(TaskId task, uint256 look);
    /// @notice The digest does not include this chunk in this step: its turns plus the step are not a
    /// multiple of the thinning.
    error NotSelected(uint256 turns, uint256 step, uint256 thinning);
    /// @notice The game does not fit the look: it must be in progress, played by the accused account on this
    /// task, and on the segment that is looked at, an earlier one, or none yet.
    error NotOfLook(TaskId task, uint256 look, GameId game);
    /// @notice The accused seat plays against the solver in this game, which is still in progress.
    error GameGoesOn(GameId game);
    /// @notice No informed seat left a draw fee, or it was already used by a draw or burned.
    error NoPurse(TaskId task);
    /// @notice The escrow or a fee left by an informed seat can pay for another draw, or no seat is empty.
    error NotVoidable(TaskId task);
    /// @notice For `stall`: every seat of the task is attested. For `lapse`: no draw is pending, or no looks
    /// were requested yet.
    error NotStalled(TaskId task);

    // ------------------------------------------------------------------ juries

    /// @notice The task's terms have no juries.
    error NoJuries(TaskId task);
    /// @notice A jury of the task is open, or its claim is not closed: wait for the verdict, or `drop` the
    /// claim.
    error JuryOpen(TaskId task);
    /// @notice The task has no claim for a jury to judge.
    error NoClaim(TaskId task);
    /// @notice The account in this seat has claimed as often as allowed.
    error NoClaimsLeft(TaskId task, uint256 seat, uint256 limit);
    /// @notice The claimant has already objected.
    error AlreadyObjected(TaskId task);
    /// @notice There is no objection, or an objection would be pointless: nobody voted yes, or more than half
    /// of the jury voted no.
    error NotObjected(TaskId task);
    /// @notice The juror need not open: it did not vote yes, or has already opened.
    error NothingToOpen(TaskId task, uint256 juror);

    // ------------------------------------------------------------------ whose turn

    /// @notice Games are numbered 1 ... games().
    error NoSuchGame(GameId game);
    /// @notice The game has ended.
    error GameIsClosed(GameId game, IDisputeGame.Verdict verdict);
    /// @notice The task's solver was convicted in another game: `closeMoot` returns the bond.
    error TaskConvicted(TaskId task);
    /// @notice The task's solver was not convicted, so the game continues.
    error NotMoot(GameId game);
    /// @notice The game is in phase `given`; this move belongs to phase `due`.
    error WrongPhase(IDisputeGame.Phase due, IDisputeGame.Phase given);
    /// @notice The solver is to move: it must answer with a claim, a demanded node or a split.
    error NotYourTurn();
    /// @notice The game waits until enough earlier games on its task are dismissed or dropped. No clock runs
    /// in it.
    error GameWaits(GameId game);
    /// @notice The move was made for a different state of the game: read the state again.
    error WrongHead(bytes32 due, bytes32 given);

    // ------------------------------------------------------------------ opening a game

    /// @notice The caller has already made this commitment.
    error AlreadyCommitted(bytes32 commitment);
    /// @notice The account has not made this commitment for this task, or it was used up or forfeited.
    error NotCommitted(bytes32 commitment);
    /// @notice The task was not convicted, so nobody has a claim on its stake.
    error NotConvicted(TaskId task);
    /// @notice The game gives the seat no claim: it belongs to another account or task, was dismissed or
    /// dropped, or is on a segment that the seat does not have.
    error NotOfSeat(TaskId task, uint256 seat, GameId game);
    /// @notice The seat does not have the segment that its commitment names.
    error NotItsSegment(TaskId task, uint256 seat, SegmentIndex segment);
    /// @notice The seat was already paid, or is owed nothing: it did not attest, has lost its lock, has the
    /// convicted segment, or is a look.
    error NothingOwed(TaskId task, uint256 seat);
    /// @notice A commitment to challenge or to inform must be used in a later block than the one in which it
    /// was made.
    error SameBlock(uint256 number);
    /// @notice Segments and steps are numbered from 1 to `last`.
    error NumberOutside(uint32 given, uint32 last);

    // ------------------------------------------------------------------ claims

    /// @notice No game has requested this claim, or it is of the other kind. For an accusation: it was not
    /// posted.
    error NotRequested(bytes32 claim);
    /// @notice The claim was already posted; claims are final.
    error AlreadyPosted(bytes32 claim);
    /// @notice The opening does not match the claim's context or key.
    error WrongContext(bytes32 due, bytes32 given);
    /// @notice Calls nest at most `limit` deep.
    error TooDeep(uint8 limit);

    // ------------------------------------------------------------------ proofs

    /// @notice The proof leads to another root.
    error WrongRoot(bytes32 due, bytes32 computed);
    /// @notice The opening belongs to another program.
    error WrongProgram(bytes32 due, bytes32 given);
    /// @notice Leaf `index` must have `due` bytes (0: there is no such leaf).
    error WrongLength(uint256 index, uint256 due, uint256 given);
    /// @notice A list must have `due` entries; it has `given`. Or part number `given` was named of `due`
    /// parts.
    error WrongCount(uint256 due, uint256 given);
    /// @notice The instruction must have opcode `due`; it has `given`.
    error WrongOpcode(uint16 due, uint16 given);
    /// @notice The instruction has no such operand or result, or an `output` has not exactly one operand.
    error Malformed();
    /// @notice The element is in chunk `due`, not `given`.
    error WrongChunk(uint64 due, uint32 given);

    // ------------------------------------------------------------------ demands and splits

    /// @notice There may be at most `limit`: nodes of a demand, demands of a game, levels of a walk,
    /// accusations of a look, or games that a look drops. For the last two, `given` is the number so far. Or
    /// a demand names no node.
    error LimitReached(uint256 limit, uint256 given);
    /// @notice The given data do not hash to the demand or selection that the game keeps, or to the
    /// instruction or words of that selection.
    error WrongPreimage(bytes32 due, bytes32 given);
    /// @notice The node was already answered, or was not demanded.
    error NotDemanded(uint8 index);
    /// @notice Only a top frame is between two states.
    error NoStates();
    /// @notice An inner node must be answered with its descendants, a leaf with its bytes.
    error WrongKind(uint32 size);
    /// @notice The stated words do not fold to the selected word or, in the first split, to the claimed bits.
    error WrongFold(uint64 due, uint64 folded);
    /// @notice The row is a single block: judge the element.
    error NothingToSplit();
    /// @notice The part is (or is not) one block: use `judgeBlock` (or `selectBlock`).
    error PartSize(uint8 part, uint32 blocks);

    // ------------------------------------------------------------------ judgments that find no difference

    /// @notice The claimed element is right.
    error ElementAgrees(uint64 bits);
    /// @notice The stated word is right.
    error BlockAgrees(uint64 word);
    /// @notice Both sides of the edge have the same value.
    error EdgeAgrees(bytes32 value);
}
