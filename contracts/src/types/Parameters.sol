// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @notice The parameters that a deployment fixes for all of its tasks. Amounts are token units, periods are
/// seconds.
/// @dev The market never changes them, so the parameters of a task cannot change after it was posted. The
/// audit board, the commitments, the juries and the game read `ITaskMarket.parameters()` when they are
/// constructed, and keep those that they need.
struct Parameters {
    // -------- times
    // ---- slot 0
    /// minPeriod is the shortest bidding, training and attestation period, extension and move time. maxPeriod
    /// is the longest bidding, training, challenge and attestation period and replay allowance. `TermsCheck`
    /// has further bounds.
    uint32 minPeriod;
    uint32 maxPeriod;
    /// Shortest and longest clock of a game. A challenge period leaves at least one minClock to commit to a
    /// challenge, and another one to open the commitment.
    uint32 minClock;
    uint32 maxClock;
    /// A draw uses the first beacon round that is published at least this long after the draw was requested.
    /// The delay must be at least the longest time by which the chain can back-date, re-order or undo a
    /// transaction.
    uint32 drawDelay;
    /// A task can be made Unpaid if its seats are not all attested this long after `IAuditBoard.stallsFrom`.
    /// A draw of looks can be cancelled (`lapse`) if it is not executed this long after its round.
    uint32 stallPeriod;
    /// How long the stake of a resigned account stays locked: at least drawDelay + stallPeriod.
    uint32 unbondingPeriod;
    /// A priority commitment that is not opened within this time loses its bond.
    uint32 openingPeriod;
    // -------- amounts
    // ---- slot 1
    /// Paid to the party that executes a draw.
    uint128 drawFee;
    /// Stake of a registration of level 0; level k stakes 2^k times as much.
    uint128 stakeUnit;
    // ---- slot 2, 24 bits are free
    /// Lower bound on the terms' cost of a game to one side: the cost of its gas.
    uint128 gameFloor;
    /// Wei of the chain's coin for each byte of the transaction that answers a demanded node, in addition to
    /// its gas: what a rollup charges for data. 0 if gas covers everything.
    uint64 dataFee;
    /// Yearly cost of capital, in hundredths of a percent: the least bond includes this cost of the solver's
    /// stake for the longest duration of a game.
    uint32 capitalRate;
    // -------- juries
    /// Smallest number of jurors that terms with juries may have.
    uint8 minJurors;
}
