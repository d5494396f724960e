// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {MapHints} from "../types/Hints.sol";

/// @title Public randomness in rounds, which nobody can choose or withhold from others.
/// @notice Round r is published at genesis + (r - 1) x period, as the signature of a fixed key. Its word is the signature's
/// SHA-256.
interface IBeacon {
    /// @notice The round was shown, the highest so far.
    event Shown(uint64 indexed round, bytes32 word);

    /// @notice The key in drand's order: x1, x0, y1, y0 of a point of G2, where x = x0 + x1 i.
    function key() external view returns (uint256[4] memory);

    /// @notice When round 1 is published, in seconds.
    function genesis() external view returns (uint64);

    /// @notice Seconds from a round to the next.
    function period() external view returns (uint64);

    /// @notice The highest round that was shown; 0 if none was.
    function latest() external view returns (uint64);

    /// @notice When a round, from 1 on, is published, in seconds.
    function timeOf(uint64 round) external view returns (uint256);

    /// @notice The last round that is published at `time` or before; 0 before genesis.
    function roundAt(uint64 time) external view returns (uint64);

    /// @notice The first round that is published at `time` or later.
    function roundFrom(uint64 time) external view returns (uint64);

    /// @notice The word of a round, whenever it is published. Reverts unless the signature is the round's and the hints are those of
    /// its message; and for lack of gas, so a revert proves nothing about a signature.
    /// @param signature A point of G1: x and y, 32 bytes each.
    /// @param hints Of the two field elements that the round's message hashes to.
    function word(uint64 round, bytes calldata signature, MapHints[2] calldata hints)
        external
        view
        returns (bytes32);

    /// @notice Anyone: proves that the beacon is alive. The round must be published by now, and higher than `latest()`.
    function show(uint64 round, bytes calldata signature, MapHints[2] calldata hints)
        external
        returns (bytes32);
}
