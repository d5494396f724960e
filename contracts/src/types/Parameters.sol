// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @notice What a deployment fixes for all of its tasks. Amounts are token units, periods are seconds.
/// @dev The market keeps the only copy and never changes it, so every task is played under the parameters it was
/// posted under; the audit board and the game read `ITaskMarket.parameters()` when they are constructed.
struct Parameters {
    // -------- times
    // ---- slot 0
    /// Shortest and longest bidding, training, challenge and attestation period.
    uint32 minPeriod;
    uint32 maxPeriod;
    /// Shortest and longest clock of a game. The shortest is also the time to commit to a challenge, and to open it.
    uint32 minClock;
    uint32 maxClock;
    /// A draw's round of the beacon is the first that is published this long after the draw was asked for: longer than the chain can
    /// back-date, re-order or undo a transaction.
    uint32 drawDelay;
    /// A task whose seats are not all attested this long after its draw (or, undrawn, after its round) can be ended unpaid.
    uint32 stallPeriod;
    /// How long a resigned account's stake stays in its lock: at least drawDelay + stallPeriod.
    uint32 unbondingPeriod;
    /// A priority commitment that is not opened this long after it was made loses its bond.
    uint32 openingPeriod;
    // -------- amounts
    // ---- slot 1
    /// Paid to the party that executes a draw.
    uint128 drawFee;
    /// Stake of a registration of level 0; that of level k is 2^k times as much.
    uint128 stakeUnit;
    // ---- slot 2, 24 bits are free
    /// Least that terms may name as the cost of a game to one side: what its gas costs.
    uint128 gameFloor;
    /// Wei of the chain's coin for each byte of the transaction that answers a demanded node, beside its gas: what a rollup charges for
    /// data. 0 where gas pays for all.
    uint64 dataFee;
    /// What capital costs a year, in hundredths of a percent: a bond pays for a stake that a lost game kept locked.
    uint32 capitalRate;
    // -------- juries
    /// Fewest jurors that terms with juries may name.
    uint8 minJurors;
}
