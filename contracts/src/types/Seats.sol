// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @notice The tasks that a registered account accepts. Draws of a task that asks for more, or pays less,
/// skip the account.
struct Offer {
    // ---- slot 0
    /// Operations per second, including the account's safety margin. The account takes no seat whose replays
    /// (stepOperations x segmentSteps x segmentsPerVerifier operations) need a higher speed to fit into
    /// attestPeriod or, if there are looks, into moveTime.
    uint64 speed;
    /// Largest size of a state, in bytes.
    uint64 stateBytes;
    /// Largest amount of the account's stake that a seat may bind, in token units.
    uint128 lock;
    // ---- slot 1
    /// Lowest fee of a seat for each 10^9 operations, in token units.
    uint112 fee;
    /// Lowest fee of a seat (and of a look if the task has looks), regardless of its operations, in token
    /// units.
    uint112 seatFee;
    /// Longest time in seconds that a task's terms may bind a seat: `ITaskMarket.SeatTerms.period`. Redraws,
    /// claims, games (including those of other seats) and waits for draws may bind it longer.
    uint32 period;
}

/// @notice An account's registration. A draw reads its slots 0 to 2.
struct Registration {
    // ---- slot 0
    address account;
    /// When it resigned; 0 before.
    uint40 resignedAt;
    /// Only draws that were requested later than this can find the account. All ones while a seat, look or
    /// jury seat binds the account or it is suspended, and once it has left.
    uint40 freeSince;
    /// k: its stake is 2^k units, and its weight in a draw is 2^k.
    uint8 level;
    /// It was silent or was caught in a seat, look or jury, or an informer showed its salt, and since then it
    /// has neither resumed nor left.
    bool suspended;
    // ---- slots 1 and 2
    Offer offer;
    // ---- slot 3
    /// Lock of the vault that holds its stake.
    uint48 lock;
}

/// @notice A seat or look of a task, whose account replays segments, or a jury seat, whose account fetches
/// the claimed data.
struct Seat {
    /// Zero if the seat is empty.
    address account;
    /// Number of the account's registration.
    uint40 registration;
    /// Last second to attest or vote: `Audit.until`, the same for all seats of the task. An empty seat can be
    /// drawn again after it.
    uint40 until;
    bool attested;
    /// The account is no longer bound.
    bool released;
    /// Its lock is lost, because of a look or a missing opening: it is paid no fee.
    bool caught;
}

/// @notice State of a task's draws.
struct Audit {
    /// The number of registrations of each level, and the version of the pool (libraries/Pool.sol), when
    /// the task was posted.
    uint16[16] pool;
    uint56 version;
    /// Round of the last draw that was requested.
    uint64 round;
    /// Time of the first draw; 0 before it.
    uint40 drawnAt;
    /// Last second to attest or vote after the latest draw, or to attest after the latest verdict of a jury.
    uint40 until;
    /// Number of draws requested.
    uint8 draws;
    /// Number of seats that are attested.
    uint8 attested;
    /// A draw was requested, and was neither executed while the task was Submitted nor cancelled by `lapse`.
    bool pending;
    /// Number of requested draws that the escrow pays for: the first draw, the redraws of seats for which
    /// neither a silent account nor a purse pays, and the draws that pick looks.
    uint8 escrowDraws;
    /// Level of the latest looks that were requested, 0 before that. If an informer empties a seat before the
    /// first looks are drawn, it is 0 again once their draw is executed or lapses. A look of level 1 repeats
    /// a segment of a seat; one of level n + 1 repeats a look of level n.
    uint8 level;
    /// Number + 1 of the seat or look whose claim a jury is to judge; 0 if there is none.
    uint8 claimant;
    /// Number of draws of this level that were requested.
    uint8 lookDraws;
    /// Lock that holds a draw fee for the next draw of seats. It is made when an informer empties a seat. 0
    /// if there is none.
    uint48 purse;
    /// When an informer last emptied a seat, or when a jury last ended, whichever is later (0 before both).
    /// The stall period restarts at this time.
    uint40 informedAt;
    /// Number of looks picked, of all levels.
    uint8 looks;
    /// Looks of this level that are neither attested nor given up: a bit for each slot.
    uint32 looking;
    /// Looks of this level that are attested; until its first draw is executed, those of the level below.
    uint32 looked;
    /// When looks were last picked (0 before). The digests that they check must be opened within a move time.
    uint40 pickedAt;
    /// Every seat is attested, no draw is pending and no look is awaited. Not stored: `auditOf` fills it in.
    bool audited;
    /// Seed of the first draw: the segments of all seats follow from it.
    bytes32 seed;
}

/// @notice A requested draw: an entry of the queue.
struct PendingDraw {
    // ---- slot 0, 16 bits are free
    uint40 task;
    /// One bit for each seat to fill, or for each slot of a level of looks or of a jury. 0: the draw picks
    /// the slots.
    uint32 seats;
    /// The beacon's round.
    uint64 round;
    /// When the round was fixed.
    uint40 fixedAt;
    /// Lock that pays the draw fee; 0 if the task's escrow does.
    uint48 purse;
    /// Level of the looks; 0 for seats, 5 for a jury.
    uint8 level;
    /// Number of the draw among the task's, counted from 1. The seed depends on it, so it is fixed here.
    uint8 number;
}
