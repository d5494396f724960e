// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {TaskId} from "../types/Ids.sol";
import {Parameters} from "../types/Parameters.sol";
import {Terms} from "../types/Terms.sol";

/// @title Posting, bidding, progress, submission, settlement.
/// @notice Every state has an exit that anyone may take after a deadline. Tokens stay in the StakeVault.
interface ITaskMarket {
    /// @notice Where a task stands. Settled, Refunded, Void and Slashed tasks are over. An Unpaid one will not be paid as its terms
    /// say: anybody may still challenge it, for a time, and then it is Void.
    enum Status {
        None,
        Bidding,
        Training,
        Submitted,
        Settled,
        Refunded,
        Void,
        Slashed,
        Unpaid
    }

    /// @notice A task's moving parts.
    struct Task {
        // ---- slot 0
        address submitter;
        /// Locks of the vault: the submitter's escrow; and of the best bidder its delay penalty, once submitted the stake.
        uint48 escrow;
        uint48 stake;
        // ---- slot 1, 16 bits are free
        /// Who made the best bid: the solver once the task is assigned.
        address bidder;
        Status status;
        /// Leaves of the latest segment tree, whose root is `root`: K + 1 once submitted.
        uint32 size;
        uint32 openGames;
        /// The escrow owes the draw fee of a draw that is asked for.
        bool owesDraw;
        // ---- slot 2, 64 bits are free: last seconds
        uint64 bidsUntil;
        uint64 trainUntil;
        /// All ones while a draw of the submitted task is asked for and not executed.
        uint64 challengeUntil;
        // ---- slot 3, 64 bits are free
        /// What the best bidder asks.
        uint128 price;
        /// Seconds by which bids have moved the end of bidding.
        uint64 overtime;
        // ---- slots 4 and 5
        bytes32 root;
        /// State root r_K; 0 before the submission.
        bytes32 result;
    }

    /// @notice What opens a game: the latest segment tree, and figures of the terms. `clock` has the replay allowance in it.
    struct Played {
        bytes32 root;
        uint32 size;
        uint32 segmentSteps;
        uint32 stateTensors;
        uint40 clock;
    }

    /// @notice What a task asks of a seat.
    struct SeatTerms {
        Status status;
        uint16 verifiers;
        uint32 attestPeriod;
        /// Root of the segment tree.
        bytes32 root;
        /// stepOperations x segmentSteps x segmentsPerVerifier.
        uint256 operations;
        uint256 stateBytes;
        uint256 lock;
        /// What the seat is paid, if it is attested.
        uint256 fee;
        /// Least that an account is paid for a place of the task that binds it till its end: a look's fee, or a seat's without looks.
        uint256 leastFee;
        /// Most seconds from a seat's draw to the task's end where every draw finds accounts, all attest, and nobody challenges or claims:
        /// challengePeriod, and with looks four times attestPeriod besides. Waiting for draws is not in it.
        uint256 period;
        /// K: those of a seat are drawn from so many.
        uint32 segments;
        // ---- what looks ask for besides
        uint32 segmentSteps;
        uint32 stateTensors;
        uint16 segmentsPerVerifier;
        uint8 thinning;
        uint32 moveTime;
        uint16 lookChance;
        uint128 gameCost;
        // ---- and juries
        uint8 jurors;
    }

    /// @notice A task is open for bids. `bundle` is where its bundle can be fetched.
    event Posted(TaskId indexed task, address indexed submitter, bytes32 indexed programId, string bundle);
    /// @notice This is the best bid now; `bidder` locked the delay penalty for it. Bidding is open until `bidsUntil`.
    event BidPlaced(TaskId indexed task, address indexed bidder, uint128 price, uint64 bidsUntil);
    /// @notice Bidding is over: `solver` won at `price` and trains.
    event Assigned(TaskId indexed task, address indexed solver, uint128 price);
    /// @notice The solver extended its segment tree to `size` leaves.
    event Progressed(TaskId indexed task, bytes32 root, uint32 size);
    /// @notice The segment tree is complete; leaf K is `result`. This round of the beacon seeds the first draw.
    event Submitted(TaskId indexed task, bytes32 root, bytes32 result, uint64 round);
    /// @notice The task is over: the solver got `paid`, verifiers their fees, the submitter the rest.
    event Settled(TaskId indexed task, address indexed solver, uint256 paid);
    /// @notice The task is over without a submission: the submitter got `refund` from its escrow. The solver lost `penalty`: half of it
    /// went to the submitter, the rest was burned (0 if nobody bid, or the submitter cancelled).
    event Refunded(TaskId indexed task, uint256 refund, uint256 penalty);
    /// @notice The submitted task will not be paid as its terms say: it stalled, or a jury found that data are withheld. Anybody may challenge it until `challengeUntil`.
    event Stalled(TaskId indexed task, uint64 challengeUntil);
    /// @notice The submitted task is over without having been audited: the submitter got `refund`, the solver `paid`, attested seats
    /// their fees. The stake was released.
    event Voided(TaskId indexed task, uint256 refund, uint256 paid);
    /// @notice The solver was convicted and its whole `stake` taken. The challenger got `reward` of it, the submitter its
    /// restitution and its escrow; the rest is for seats (`ICommitments`), and burns when their time is over.
    event Slashed(
        TaskId indexed task, address indexed solver, address indexed challenger, uint256 stake, uint256 reward
    );
    /// @notice What no seat claimed of a convicted solver's stake was burned.
    event RestBurned(TaskId indexed task, uint256 amount);

    /// @notice The party serves its data at `url`.
    event Announced(address indexed party, string url);

    /// @notice Where the caller serves its data (at most 256 bytes); replaces what it announced before.
    function announce(string calldata url) external;
    /// @notice What the party announced last; empty if it announced nothing.
    function endpointOf(address party) external view returns (string memory);

    /// @notice Posts a task; locks budget + V q auditFee + 8 drawFee from the caller's free balance, with looks V q auditFee + 4 drawFee
    /// more. Bounds on every number. Refused
    /// while paused, while no verifier is registered, or with juries fewer than have a seat in the audit and a jury, and while the last round that the beacon was shown is older than a day.
    function post(Terms calldata terms) external returns (TaskId task);

    /// @notice Bids a price; locks the delay penalty while the bid stands. The first bid is at most the budget. A later one undercuts
    /// the best by at least 2 %, and by twice that for each whole extension by which bids have moved the end, up to 64 %; it
    /// releases the other's lock. Bidding goes on for at least `extension` seconds after every bid.
    function bid(TaskId task, uint128 price) external;

    /// @notice Anyone, after bidding: the best bidder becomes the solver; without a bid the submitter is refunded.
    function assign(TaskId task) external;

    /// @notice Submitter, as long as nobody has bid: takes the task back, and the whole escrow returns. A first bid that is mined before
    /// it stands, and one that is mined after it is refused before it locks anything.
    function cancel(TaskId task) external;

    /// @notice Solver: extends the segment tree. The first progress proves leaf 0 = r_0 with `firstPath` in the new tree; a later
    /// one proves consistency with the last root.
    function progress(
        TaskId task,
        bytes32 root,
        uint32 size,
        bytes32[] calldata firstPath,
        bytes32[] calldata consistency
    ) external;

    /// @notice Solver: as `progress`, with size K + 1 exactly, opening leaf K as the result. Locks the stake from the solver's free
    /// balance, releases its delay penalty, asks for the first draw. Challenges are taken from now on.
    function submit(
        TaskId task,
        bytes32 root,
        bytes32[] calldata firstPath,
        bytes32[] calldata consistency,
        bytes32 result,
        bytes32[] calldata resultPath
    ) external;

    /// @notice Anyone: the solver missed the deadline. Half of the delay penalty, rounded down, goes to the submitter, the rest burns;
    /// the submitter is refunded.
    function expire(TaskId task) external;

    /// @notice Anyone: window over, no open game, every seat attested, no look awaited and no accusation open. Pays solver and seats, the
    /// rest goes back to the submitter.
    function settle(TaskId task) external;

    /// @notice Anyone: window over, no open game, 8 draws were paid by the escrow, no informed seat has left another's fee, and a seat
    /// is empty. Releases the stake; attested seats have their fees, the rest goes back to the submitter.
    function voidTask(TaskId task) external;

    /// @notice Anyone: the draw was not executed within the stall period after its round, or seats are not attested within the stall
    /// period after the first draw, or after an informer emptied one. The stake stays locked for twice the training period and
    /// two clocks more.
    function stall(TaskId task) external;

    /// @notice Anyone: that time is over, and no game is open. Releases the stake; attested seats have their fees. Of a task that was
    /// never drawn half of the price goes to the solver. The rest goes back to the submitter.
    function closeStalled(TaskId task) external;

    /// @notice DisputeGame only: a game on the task opened. Reverts unless the task is Submitted or Unpaid, within its challenge
    /// window or while an accusation may be answered. Every opened game is closed once, in any status, by `gameClosed` or `convict`.
    function gameOpened(TaskId task) external returns (Played memory);

    /// @notice DisputeGame only: a game on the task ended without a conviction.
    function gameClosed(TaskId task) external;

    /// @notice DisputeGame only: the solver was found wrong in a game, which this closes. The challenger has the reward, or where the
    /// task was Unpaid the retrainer's, the submitter its restitution and its escrow. Reverts unless the task is Submitted or
    /// Unpaid, so it happens once.
    function convict(TaskId task, address challenger) external;

    /// @notice Commitments only: pays an account out of a convicted solver's stake: what a game costs, and the fee of
    /// that many segments.
    function compensate(TaskId task, address account, bool cost, uint256 segments)
        external
        returns (uint256 amount);

    /// @notice Anyone, once no seat can claim any more (`ICommitments.claimsUntil`): burns what is left of a convicted solver's stake.
    function burnRest(TaskId task) external;

    /// @notice AuditBoard only: a draw of the submitted task is asked for again, so challenges are taken until it is executed and the
    /// challenge period after it is over. `owed`: the escrow pays it.
    function drawAsked(TaskId task, bool owed) external;

    /// @notice AuditBoard only: a draw was executed. Restarts the challenge window of a submitted task: it ends as long after `until`, the last
    /// second of attestations or now if that is later, as challengePeriod is longer than attestPeriod; 0: the window stays. Pays the
    /// draw fee if the escrow owes it, in any status.
    function drawn(TaskId task, address drawer, uint64 until) external;

    /// @notice Juries only: a jury found that data of the submitted task are withheld. Out of the stake the claimant has `auditFee` and the
    /// draw fee back. So much of it burns besides that a sixteenth, rounded down, is taken in all. The task is Unpaid for as long as after `stall`.
    function withheld(TaskId task, address claimant) external;

    /// @notice AuditBoard only: pays the account of a look that is attested its fee, that of one segment.
    function payLook(TaskId task, address account) external;

    /// @notice Where the task stands. Reverts for a task that does not exist, as does `termsOf`.
    function taskOf(TaskId task) external view returns (Task memory);

    /// @notice Its status alone; `None` for a task that does not exist.
    function statusOf(TaskId task) external view returns (Status);

    /// @notice What its submitter asked for.
    function termsOf(TaskId task) external view returns (Terms memory);

    /// @notice What it asks of a seat.
    function seatTermsOf(TaskId task) external view returns (SeatTerms memory);

    /// @notice The bond of a challenge, and whether it doubles for those without a seat: not where the task is Unpaid. Reverts unless
    /// the task is Submitted or Unpaid, within its challenge window or while an accusation may be answered.
    function bondOf(TaskId task) external view returns (uint128 bond, bool doubles);

    /// @notice The winner of the bidding; zero while it goes on, without a bid, and for a task that does not exist.
    function solverOf(TaskId task) external view returns (address);

    /// @notice The step program of the task's terms; zero for a task that does not exist.
    function programOf(TaskId task) external view returns (bytes32);

    /// @notice Root and size of the constants tree of the task's terms; zeros for a task that does not exist.
    function constantsOf(TaskId task) external view returns (bytes32 root, uint32 size);

    /// @notice The dispute game, whose calls `gameOpened`, `gameClosed` and `convict` take.
    function game() external view returns (address);

    /// @notice The looks, whose calls `IAuditBoard.caught` and `forfeit` take.
    function looks() external view returns (address);

    /// @notice The juries, whose calls `withheld`, `IAuditBoard.askJury`, `endJury` and `forfeit` take.
    function juries() external view returns (address);

    /// @notice What the deployment fixed for all tasks.
    function parameters() external view returns (Parameters memory);

    /// @notice Number of tasks; ids are 1 … tasks().
    function tasks() external view returns (uint256);
}
