// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @notice What a deployment fixes for all of its tasks. Amounts are token units, periods are seconds.
/// @dev The market keeps the only copy and never changes it, so every task is played under the parameters it was
/// posted under; the audit board and the game read `ITaskMarket.parameters()` when they are constructed.
struct Parameters {
    // -------- bounds on terms
    // ---- slot 0, 56 bits are free
    /// Shortest and longest bidding, training, challenge and attestation period.
    uint32 minPeriod;
    uint32 maxPeriod;
    /// Shortest and longest clock of a game. The shortest is also the time to commit to a challenge, and to open it.
    uint32 minClock;
    uint32 maxClock;
    // -------- audit
    /// Blocks from a submission (or a missed draw) to the block that seeds the draw: at least 128 on an L1.
    uint32 drawDelay;
    /// Draws that may be missed before a task is void.
    uint8 maxMisses;
    /// How long a resigned verifier's stake stays in its lock.
    uint32 unbondingPeriod;
    // ---- slot 1
    /// Paid from the escrow to whoever proves the draw block's header.
    uint128 drawFee;
    /// Stake behind one slot of a verifier.
    uint128 stakeUnit;
    // -------- game
    // ---- slot 2, 96 bits are free
    /// A priority commitment is void this long after it was made.
    uint32 openingPeriod;
    /// Locked by a challenger; lost when the challenger is wrong or silent.
    uint128 challengeBond;
    // ---- slot 3, 128 bits are free
    /// Most that a challenger earns on top of its bond: at most twice the published cost of a challenge.
    uint128 rewardCap;
}
