// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {TaskId} from "../types/Ids.sol";
import {Parameters} from "../types/Parameters.sol";
import {Terms} from "../types/Terms.sol";

/// @title Posting, bidding, progress, submission, settlement.
/// @notice Until a task is over, its state has an exit that anyone can trigger after a deadline. Tokens stay
/// in the StakeVault.
interface ITaskMarket {
    /// @notice State of a task. Settled, Refunded, Void and Slashed tasks are over. An Unpaid task will not
    /// be paid as its terms say: for a time anyone may still challenge it. It becomes Slashed on a
    /// conviction, otherwise Void.
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

    /// @notice The variable state of a task.
    struct Task {
        // ---- slot 0
        address submitter;
        /// Locks of the vault: the submitter's escrow, and the best bidder's delay penalty, replaced by the
        /// stake on submission.
        uint48 escrow;
        uint48 stake;
        // ---- slot 1, 16 bits are free
        /// Who made the best bid; the solver once the task is assigned.
        address bidder;
        Status status;
        /// Leaves of the latest segment tree, whose root is `root`: K + 1 once submitted.
        uint32 size;
        uint32 openGames;
        /// The escrow owes the draw fee of a pending draw.
        bool owesDraw;
        // ---- slot 2, 64 bits are free: last seconds
        uint64 bidsUntil;
        uint64 trainUntil;
        /// All ones while a draw of the submitted task is pending or a jury is open. The window is open until
        /// `ILooks.answersUntil` if that is later.
        uint64 challengeUntil;
        // ---- slot 3, 64 bits are free
        /// The best bidder's price.
        uint128 price;
        /// Seconds by which bids have moved the end of bidding.
        uint64 overtime;
        // ---- slots 4 and 5
        bytes32 root;
        /// State root r_K; 0 before the submission.
        bytes32 result;
    }

    /// @notice What a game is opened with: the latest segment tree, and figures of the terms. `clock`
    /// includes the replay allowance.
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
        /// Paid to the seat if it attests.
        uint256 fee;
        /// Lowest fee of any place (seat or look) that binds its account until the task's end: the fee of a
        /// look if the task has looks, otherwise the fee of a seat.
        uint256 leastFee;
        /// Longest time in seconds from a seat's draw to the task's end if every draw finds accounts, all
        /// attest, and nobody challenges, accuses or claims: challengePeriod, plus four times attestPeriod
        /// if there are looks. Excludes waiting for draws.
        uint256 period;
        /// K: the segments that those of a seat are drawn from.
        uint32 segments;
        // ---- further terms, for looks
        uint32 segmentSteps;
        uint32 stateTensors;
        uint16 segmentsPerVerifier;
        uint8 thinning;
        uint32 moveTime;
        uint16 lookChance;
        uint128 gameCost;
        // ---- and for juries
        uint8 jurors;
    }

    /// @notice A task is open for bids. `bundle` is where its bundle can be fetched.
    event Posted(TaskId indexed task, address indexed submitter, bytes32 indexed programId, string bundle);
    /// @notice This is now the best bid; `bidder` locked the delay penalty for it. Bidding is open until
    /// `bidsUntil`.
    event BidPlaced(TaskId indexed task, address indexed bidder, uint128 price, uint64 bidsUntil);
    /// @notice Bidding is over: `solver` won at `price` and trains.
    event Assigned(TaskId indexed task, address indexed solver, uint128 price);
    /// @notice The solver extended its segment tree to `size` leaves.
    event Progressed(TaskId indexed task, bytes32 root, uint32 size);
    /// @notice The segment tree is complete; leaf K is `result`. This round of the beacon seeds the first
    /// draw.
    event Submitted(TaskId indexed task, bytes32 root, bytes32 result, uint64 round);
    /// @notice The task is over: the solver got `paid`, the verifiers their fees, the submitter the rest.
    event Settled(TaskId indexed task, address indexed solver, uint256 paid);
    /// @notice The task is over without a submission: the submitter got `refund` from its escrow. The solver
    /// lost `penalty`, of which half went to the submitter and the rest was burned. `penalty` is 0 if nobody
    /// bid or the submitter cancelled.
    event Refunded(TaskId indexed task, uint256 refund, uint256 penalty);
    /// @notice The submitted task will not be paid as its terms say: it stalled, or a jury found that data
    /// are withheld. Anyone may challenge it until `challengeUntil`.
    event Stalled(TaskId indexed task, uint64 challengeUntil);
    /// @notice The task ended as Void: the submitter got `refund`, the solver `paid`, attested seats their
    /// fees. What was left of the stake was released.
    event Voided(TaskId indexed task, uint256 refund, uint256 paid);
    /// @notice The solver was convicted and its whole `stake` taken. The challenger got `reward` of it; the
    /// submitter got its restitution and its escrow. The rest is reserved for seats and looks
    /// (`ICommitments`); anyone may burn what is left once their time to claim is over.
    event Slashed(
        TaskId indexed task, address indexed solver, address indexed challenger, uint256 stake, uint256 reward
    );
    /// @notice The part of a convicted solver's stake that no seat claimed was burned.
    event RestBurned(TaskId indexed task, uint256 amount);

    /// @notice The party serves its data at `url`.
    event Announced(address indexed party, string url);

    /// @notice Sets the URL where the caller serves its data (at most 256 bytes), replacing any earlier one.
    function announce(string calldata url) external;
    /// @notice The URL that the party announced last; empty if it announced none.
    function endpointOf(address party) external view returns (string memory);

    /// @notice Posts a task. Locks budget + V q auditFee + 8 drawFee from the caller's free balance, and with
    /// looks V q auditFee + 4 drawFee more. Checks bounds on every number. Refused while paused, while no
    /// verifier is registered (with juries: fewer than V + J), and while no round was shown to the beacon or
    /// the latest one is more than a day old.
    function post(Terms calldata terms) external returns (TaskId task);

    /// @notice Bids a price; locks the delay penalty while the bid stands. The first bid is at most the
    /// budget. A later bid must undercut the best one by at least 2 %, doubled for each whole extension by
    /// which bids have moved the end, up to 64 %; it releases the earlier bidder's lock. Bidding stays open
    /// for at least `extension` seconds after every bid.
    function bid(TaskId task, uint128 price) external;

    /// @notice Anyone, after bidding: the best bidder becomes the solver; without a bid the submitter is
    /// refunded.
    function assign(TaskId task) external;

    /// @notice Submitter, while nobody has bid: cancels the task; the whole escrow is returned. Reverts if a
    /// first bid is mined before it. A bid mined after it is refused before it locks anything.
    function cancel(TaskId task) external;

    /// @notice Solver: extends the segment tree. The first progress proves leaf 0 = r_0 with `firstPath` in
    /// the new tree; a later one proves consistency with the last root.
    function progress(
        TaskId task,
        bytes32 root,
        uint32 size,
        bytes32[] calldata firstPath,
        bytes32[] calldata consistency
    ) external;

    /// @notice Solver: as `progress`, but with exactly K + 1 leaves; also opens leaf K as the result. Locks
    /// the stake from the solver's free balance, releases its delay penalty and requests the first draw.
    /// Challenges are accepted from now on.
    function submit(
        TaskId task,
        bytes32 root,
        bytes32[] calldata firstPath,
        bytes32[] calldata consistency,
        bytes32 result,
        bytes32[] calldata resultPath
    ) external;

    /// @notice Anyone: ends a task whose solver missed the deadline. Half of the delay penalty, rounded down,
    /// goes to the submitter and the rest burns; the submitter is refunded.
    function expire(TaskId task) external;

    /// @notice Anyone: settles a task whose window is over, with no open game, every seat attested, no look
    /// awaited and no accusation open. Pays the solver and the seats; the rest goes back to the submitter.
    function settle(TaskId task) external;

    /// @notice Anyone: voids a task whose window is over, with no open game, if the escrow has paid for 8
    /// draws, no draw fee left by an informed seat remains, and a seat is empty. Releases the stake; attested
    /// seats get their fees, and the rest goes back to the submitter.
    function voidTask(TaskId task) external;

    /// @notice Anyone: makes the task Unpaid if its seats are not all attested and the stall period since
    /// `IAuditBoard.stallsFrom` is over. From now on the stake stays locked for at least the sum of twice
    /// the training period and twice the clock (with the replay allowance).
    function stall(TaskId task) external;

    /// @notice Anyone: voids an Unpaid task after that time if no game is open. Releases what is left of the
    /// stake; attested seats get their fees. If the task was never drawn, half of the price, rounded down,
    /// goes to the solver. The rest goes back to the submitter.
    function closeStalled(TaskId task) external;

    /// @notice DisputeGame only: a game on the task opened. Reverts unless the task is Submitted or Unpaid,
    /// and either its challenge window is open or the last answer to an accusation was not yet due
    /// (`ILooks.answersUntil`). Every opened game is closed once: by `convict`, or in any status by
    /// `gameClosed`.
    function gameOpened(TaskId task) external returns (Played memory);

    /// @notice DisputeGame only: a game on the task ended without convicting the solver.
    function gameClosed(TaskId task) external;

    /// @notice DisputeGame only: the solver was found wrong or silent in a game, which this closes.
    /// `challenger` gets the reward (the retrainer's reward if the task was Unpaid), the submitter its
    /// restitution and its escrow. Reverts unless the task is Submitted or Unpaid, so it happens at most
    /// once.
    function convict(TaskId task, address challenger) external;

    /// @notice Commitments only: pays an account out of a convicted solver's stake: the cost of a game if
    /// `cost`, and the fee of `segments` segments.
    function compensate(TaskId task, address account, bool cost, uint256 segments)
        external
        returns (uint256 amount);

    /// @notice Anyone, once no seat can claim any more (`ICommitments.claimsUntil`): burns the rest of a
    /// convicted solver's stake.
    function burnRest(TaskId task) external;

    /// @notice AuditBoard only: another draw of the submitted task was requested, so the challenge window
    /// stays open until `drawn` sets its end. `owed`: the escrow pays for the draw.
    function drawAsked(TaskId task, bool owed) external;

    /// @notice AuditBoard only: a draw was executed or lapsed, or a jury ended and the task goes on. The
    /// challenge window of a submitted task now ends at `until` + challengePeriod - attestPeriod, where
    /// `until` is the last second of attestations, or now if that is later. With `until` 0 the window stays.
    /// Pays the draw fee if the escrow owes it, in any status.
    function drawn(TaskId task, address drawer, uint64 until) external;

    /// @notice Juries only: a jury found that data of the submitted task are withheld. The claimant gets
    /// `auditFee` and a draw fee out of the stake. A further part burns, so that a sixteenth of the stake,
    /// rounded down, is taken in all. The task becomes Unpaid, for the same time as after `stall`.
    function withheld(TaskId task, address claimant) external;

    /// @notice AuditBoard only: pays the account of an attested look its fee, that of one segment.
    function payLook(TaskId task, address account) external;

    /// @notice State of the task. Reverts for a task that does not exist, as do `termsOf`, `seatTermsOf` and
    /// `bondOf`.
    function taskOf(TaskId task) external view returns (Task memory);

    /// @notice The task's status alone; `None` for a task that does not exist.
    function statusOf(TaskId task) external view returns (Status);

    /// @notice The task's terms.
    function termsOf(TaskId task) external view returns (Terms memory);

    /// @notice What the task asks of a seat.
    function seatTermsOf(TaskId task) external view returns (SeatTerms memory);

    /// @notice The bond of the terms, and whether `ICommitments.bondOf` may double it; not if the task is
    /// Unpaid. Reverts unless the task is Submitted or Unpaid, and either its challenge window is open or the
    /// last answer to an accusation was not yet due (`ILooks.answersUntil`).
    function bondOf(TaskId task) external view returns (uint128 bond, bool doubles);

    /// @notice The winner of the bidding; zero during the bidding, without a bid, and for a task that does
    /// not exist.
    function solverOf(TaskId task) external view returns (address);

    /// @notice The step program of the task's terms; zero for a task that does not exist.
    function programOf(TaskId task) external view returns (bytes32);

    /// @notice Root and size of the constants tree of the task's terms; zeros for a task that does not exist.
    function constantsOf(TaskId task) external view returns (bytes32 root, uint32 size);

    /// @notice The dispute game, which may call `gameOpened`, `gameClosed` and `convict`.
    function game() external view returns (address);

    /// @notice The looks contract, which may call `IAuditBoard.caught` and `forfeit`, and
    /// `IDisputeGame.drop`.
    function looks() external view returns (address);

    /// @notice The juries contract, which may call `withheld`, `IAuditBoard.askJury`, `endJury` and
    /// `forfeit`.
    function juries() external view returns (address);

    /// @notice The parameters that the deployment fixed for all tasks.
    function parameters() external view returns (Parameters memory);

    /// @notice Number of tasks; ids are 1 … tasks().
    function tasks() external view returns (uint256);
}
