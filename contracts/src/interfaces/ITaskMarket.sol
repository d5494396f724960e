// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {TaskId} from "../types/Ids.sol";
import {Parameters} from "../types/Parameters.sol";
import {Terms} from "../types/Terms.sol";

/// @title Posting, bidding, progress, submission, settlement.
/// @notice Every state has an exit that anyone may take after a deadline. Tokens stay in the StakeVault.
interface ITaskMarket {
    /// @notice Where a task stands. From `Settled` on it is over.
    enum Status {
        None,
        Bidding,
        Training,
        Submitted,
        Settled,
        Refunded,
        Void,
        Slashed
    }

    /// @notice A task's moving parts.
    struct Task {
        // ---- slot 0
        address submitter;
        /// Locks of the vault: the submitter's escrow, and the stake of the best bid.
        uint48 escrow;
        uint48 stake;
        // ---- slot 1, 24 bits are free
        /// Who made the best bid: the solver once the task is assigned.
        address bidder;
        Status status;
        /// Leaves of the latest segment tree, whose root is `root`: K + 1 once submitted.
        uint32 size;
        uint32 openGames;
        // ---- slot 2: last seconds, and the block that seeds the draw
        uint64 bidsUntil;
        uint64 trainUntil;
        uint64 challengeUntil;
        uint64 drawBlock;
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

    /// @notice A task is open for bids. `bundle` is where its bundle can be fetched.
    event Posted(TaskId indexed task, address indexed submitter, bytes32 indexed programId, string bundle);
    /// @notice This is the best bid now; `bidder` locked the stake for it. Bidding is open until `bidsUntil`.
    event BidPlaced(TaskId indexed task, address indexed bidder, uint128 price, uint64 bidsUntil);
    /// @notice Bidding is over: `solver` won at `price` and trains.
    event Assigned(TaskId indexed task, address indexed solver, uint128 price);
    /// @notice The solver extended its segment tree to `size` leaves.
    event Progressed(TaskId indexed task, bytes32 root, uint32 size);
    /// @notice The segment tree is complete; leaf K is `result`. The header of block `drawBlock` seeds the draw.
    event Submitted(TaskId indexed task, bytes32 root, bytes32 result, uint64 drawBlock);
    /// @notice A draw was missed: the header of block `drawBlock` seeds the next one.
    event DrawBlockFixed(TaskId indexed task, uint64 drawBlock);
    /// @notice The task is over: the solver got `paid`, verifiers their fees, the submitter the rest.
    event Settled(TaskId indexed task, address indexed solver, uint256 paid);
    /// @notice The task is over without a submission: the submitter got `refund`, `penalty` of the stake was burned (0 if nobody
    /// bid).
    event Refunded(TaskId indexed task, uint256 refund, uint256 penalty);
    /// @notice The submitted task is over without enough attestations: the submitter got `refund`, `penalty` of the stake was
    /// burned (all of it if the task was never drawn, else 0).
    event Voided(TaskId indexed task, uint256 refund, uint256 penalty);
    /// @notice The solver was convicted and its whole `stake` taken. The challenger got `reward` of it, the submitter its
    /// restitution and its escrow; the rest was burned.
    event Slashed(
        TaskId indexed task, address indexed solver, address indexed challenger, uint256 stake, uint256 reward
    );

    /// @notice The party serves its data at `url`.
    event Announced(address indexed party, string url);

    /// @notice Where the caller serves its data (at most 256 bytes); replaces what it announced before.
    function announce(string calldata url) external;
    /// @notice What the party announced last; empty if it announced nothing.
    function endpointOf(address party) external view returns (string memory);

    /// @notice Posts a task; locks budget + V (q + 1) auditFee + drawFee from the caller's free balance (every drawn verifier
    /// also replays segment K). Bounds on every number. Refused while paused, and while no verifier is registered.
    function post(Terms calldata terms) external returns (TaskId task);

    /// @notice Bids a price; locks the stake while the bid stands. The first bid is at most the budget. A later one undercuts the
    /// best by at least 2 %, and by twice that for each whole extension by which bids have moved the end, up to 64 %; it
    /// releases the other's stake. Bidding goes on for at least `extension` seconds after every bid.
    function bid(TaskId task, uint128 price) external;

    /// @notice Anyone, after bidding: the best bidder becomes the solver; without a bid the submitter is refunded.
    function assign(TaskId task) external;

    /// @notice Solver: extends the segment tree. The first progress proves leaf 0 = r_0 with `firstPath` in the new tree; a later
    /// one proves consistency with the last root.
    function progress(
        TaskId task,
        bytes32 root,
        uint32 size,
        bytes32[] calldata firstPath,
        bytes32[] calldata consistency
    ) external;

    /// @notice Solver: as `progress`, with size K + 1 exactly, opening leaf K as the result. Fixes the draw's block.
    function submit(
        TaskId task,
        bytes32 root,
        bytes32[] calldata firstPath,
        bytes32[] calldata consistency,
        bytes32 result,
        bytes32[] calldata resultPath
    ) external;

    /// @notice Anyone: the solver missed the deadline, no game is open. Burns the penalty, refunds the submitter.
    function expire(TaskId task) external;

    /// @notice Anyone: window over, no open game, every drawn segment attested. Pays solver and verifiers, the rest goes back
    /// to the submitter.
    function settle(TaskId task) external;

    /// @notice Anyone: window over, no open game, and either attestations are missing or every draw was missed. Refunds the
    /// submitter. Missing attestations release the stake; without a draw all of it burns, for a solver that kept everybody from
    /// drawing would else have nothing to lose.
    function voidTask(TaskId task) external;

    /// @notice DisputeGame only: a game on the task opened. Reverts unless the task has progress and is still Training in time,
    /// or is Submitted within its challenge window. Every opened game is closed once, in any status, by `gameClosed` or
    /// `convict`.
    function gameOpened(TaskId task) external returns (Played memory);

    /// @notice DisputeGame only: a game on the task ended without a conviction.
    function gameClosed(TaskId task) external;

    /// @notice DisputeGame only: the solver was found wrong in a game, which this closes; distributes the stake and refunds the
    /// escrow. Reverts unless the task is Training or Submitted, so it happens once.
    function convict(TaskId task, address challenger, uint256 reward) external;

    /// @notice AuditBoard only: fixes a new draw block after a missed one. Restarts the challenge window, as `payDrawer` does: so
    /// it is never over before the draw, nor before the attestations are due (challengePeriod is longer than attestPeriod).
    function fixDrawBlock(TaskId task) external returns (uint64 drawBlock);

    /// @notice AuditBoard only: pays the draw fee from the escrow to whoever proved the draw block's header, and restarts the
    /// challenge window.
    function payDrawer(TaskId task, address drawer) external;

    /// @notice Where the task stands. Reverts for a task that does not exist, as does `termsOf`.
    function taskOf(TaskId task) external view returns (Task memory);

    /// @notice What its submitter asked for.
    function termsOf(TaskId task) external view returns (Terms memory);

    /// @notice The winner of the bidding; zero while it goes on, without a bid, and for a task that does not exist.
    function solverOf(TaskId task) external view returns (address);

    /// @notice The step program of the task's terms; zero for a task that does not exist.
    function programOf(TaskId task) external view returns (bytes32);

    /// @notice Root and size of the constants tree of the task's terms; zeros for a task that does not exist.
    function constantsOf(TaskId task) external view returns (bytes32 root, uint32 size);

    /// @notice What the deployment fixed for all tasks.
    function parameters() external view returns (Parameters memory);

    /// @notice Number of tasks; ids are 1 … tasks().
    function tasks() external view returns (uint256);
}
