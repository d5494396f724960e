// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @notice What a deployment fixes for all of its tasks. Amounts are token units, periods are seconds.
/// @dev The market keeps the only copy and never changes it, so every task is played under the parameters it was
/// posted under; the audit board and the game read `ITaskMarket.parameters()` when they are constructed.
struct Parameters {
    // -------- bounds on terms
    // ---- slot 0, 32 bits are free
    /// Shortest and longest bidding, training, challenge and attestation period.
    uint32 minPeriod;
    uint32 maxPeriod;
    /// Shortest and longest clock of a game. The shortest is also the time to commit to a challenge, and to open it.
    uint32 minClock;
    uint32 maxClock;
    // -------- audit
    /// A draw's round of the beacon is the first that is published this long after the draw was asked for: longer than the chain can
    /// back-date, re-order or undo a transaction.
    uint32 drawDelay;
    /// A task whose seats are not all attested this long after its draw (or, undrawn, after its round) can be ended unpaid.
    uint32 stallPeriod;
    /// How long a resigned account's stake stays in its lock: at least drawDelay + stallPeriod.
    uint32 unbondingPeriod;
    // ---- slot 1
    /// Paid to whoever executes a draw.
    uint128 drawFee;
    /// Stake of a registration of level 0; that of level k is 2^k times as much.
    uint128 stakeUnit;
    // -------- game
    // ---- slot 2, 96 bits are free
    /// A priority commitment is void this long after it was made.
    uint32 openingPeriod;
    /// Locked by a challenger; lost when the challenger is wrong or silent.
    uint128 challengeBond;
    // ---- slot 3, 64 bits are free
    /// Most that a challenger earns on top of its bond: at most twice the published cost of a challenge.
    uint128 rewardCap;
    /// Wei of the chain's coin for each byte of the transaction that answers a demanded node, beside its gas: what a rollup charges for
    /// data. 0 where gas pays for all.
    uint64 dataFee;
}
