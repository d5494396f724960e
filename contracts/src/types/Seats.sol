// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @notice What a registered account takes: a task that asks for more, or pays less, passes it over in every draw.
struct Offer {
    // ---- slot 0
    /// Most operations of a seat: stepOperations x segmentSteps x segmentsPerVerifier.
    uint64 operations;
    /// Most bytes of a state.
    uint64 stateBytes;
    /// Most that a seat may bind of its stake.
    uint128 lock;
    // ---- slot 1
    /// Least that a seat pays for each 10^9 operations, in token units.
    uint112 fee;
    /// Least that a seat pays, and a look where the task has looks, whatever its operations, in token units.
    uint112 seatFee;
    /// Most seconds that a task's terms bind a seat: `ITaskMarket.SeatTerms.period`.
    uint32 period;
}

/// @notice An account's registration. A draw reads its slots 0 to 2.
struct Registration {
    // ---- slot 0
    address account;
    /// When it resigned, 0 before.
    uint40 resignedAt;
    /// It can be drawn by rounds that were fixed later than this: all ones while it has a seat or is suspended.
    uint40 freeSince;
    /// k: its stake is 2^k units, and so is its weight in a draw.
    uint8 level;
    /// It was silent in a seat, or its salt was shown, and it has not resumed.
    bool suspended;
    // ---- slots 1 and 2
    Offer offer;
    // ---- slot 3
    /// Lock of the vault that holds its stake.
    uint48 lock;
}

/// @notice One of a task's seats, or of its looks: who replays its segments. Or one of a jury: who fetches what is said to be withheld.
struct Seat {
    /// Zero while nobody was found.
    address account;
    /// Number of the account's registration.
    uint40 registration;
    /// Last second for its attestation, or, where nobody was found, before the seat is drawn again: that of the last draw.
    uint40 until;
    bool attested;
    /// The account is bound no longer.
    bool released;
    /// Its lock is lost, by what a look has shown: it is paid no fee.
    bool caught;
}

/// @notice What a task's draws have come to.
struct Audit {
    /// Registrations of each level when the task was posted.
    uint16[16] pool;
    uint56 version;
    /// Round of the last draw that was asked for.
    uint64 round;
    /// Time of the first draw, 0 before it.
    uint40 drawnAt;
    /// Last second for the latest attestation.
    uint40 until;
    /// Draws that were asked for.
    uint8 draws;
    /// Seats that are attested.
    uint8 attested;
    /// A draw was asked for and not executed.
    bool pending;
    /// Draws that the escrow pays: the first of all seats, those of seats that nobody was found for, the first of each level of looks.
    uint8 escrowDraws;
    /// Of the latest looks that were asked for: a look of level 1 repeats a segment of a seat, one of level n + 1 a look of level n.
    /// 0: none were.
    uint8 level;
    /// Number + 1 of the seat, or look, whose claim a jury is to judge; 0: there is none.
    uint8 claimant;
    /// Draws of this level that were asked for.
    uint8 lookDraws;
    /// Lock with the draw fee that an informed seat left for the next draw; 0: there is none.
    uint48 purse;
    /// When an informer last emptied a seat, or a jury last ended, 0 before: the stall period counts from then.
    uint40 informedAt;
    /// Looks that were picked, of all levels.
    uint8 looks;
    /// Looks of this level that are neither attested nor given up: a bit for each slot.
    uint32 looking;
    /// Looks of this level that are attested; until its first draw is executed those of the level below.
    uint32 looked;
    /// When looks were last picked, 0 before: what they look at is revealed within a move time.
    uint40 pickedAt;
    /// Every seat is attested, no draw is asked for, and no look awaited. Not kept: `auditOf` fills it in.
    bool audited;
    /// Of the first draw: the segments of all seats follow from it.
    bytes32 seed;
}

/// @notice A draw that was asked for: an entry of the queue.
struct PendingDraw {
    // ---- slot 0, 24 bits are free
    uint40 task;
    /// One bit for each seat to fill, or for each slot of a level of looks, or of a jury; 0: the word picks the slots.
    uint32 seats;
    /// The beacon's round.
    uint64 round;
    /// When the round was fixed.
    uint40 fixedAt;
    /// Lock that pays the draw fee; 0: the task's escrow does.
    uint48 purse;
    /// Of the looks; 0: seats, 5: a jury.
    uint8 level;
}
