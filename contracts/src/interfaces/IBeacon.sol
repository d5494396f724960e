// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {MapHints} from "../types/Hints.sol";

/// @title Public randomness in rounds. Nobody can choose it or withhold it from others.
/// @notice Round r is published at genesis + (r - 1) x period, as a signature by a fixed key. Its word is the
/// SHA-256 of the signature.
interface IBeacon {
    /// @notice The round was shown; it is the highest so far.
    event Shown(uint64 indexed round, bytes32 word);

    /// @notice The key in drand's order: x1, x0, y1, y0 of a point of G2, where x = x0 + x1 i.
    function key() external view returns (uint256[4] memory);

    /// @notice Time at which round 1 is published, in seconds.
    function genesis() external view returns (uint64);

    /// @notice Seconds between rounds.
    function period() external view returns (uint64);

    /// @notice The highest round shown so far; 0 if none was.
    function latest() external view returns (uint64);

    /// @notice Time at which a round (1 or higher) is published, in seconds.
    function timeOf(uint64 round) external view returns (uint256);

    /// @notice The last round published at or before `time`; 0 before genesis.
    function roundAt(uint64 time) external view returns (uint64);

    /// @notice The first round published at or after `time`.
    function roundFrom(uint64 time) external view returns (uint64);

    /// @notice The word of a round, whether or not its time has come. Reverts unless the signature is the
    /// round's and the hints belong to its message. It also reverts for lack of gas, so a revert proves
    /// nothing about a signature.
    /// @param signature A point of G1: x and y, 32 bytes each.
    /// @param hints Hints for the two field elements that the round's message hashes to.
    function word(uint64 round, bytes calldata signature, MapHints[2] calldata hints)
        external
        view
        returns (bytes32);

    /// @notice Anyone: proves that the beacon is live. The round must already be due and higher than
    /// `latest()`.
    function show(uint64 round, bytes calldata signature, MapHints[2] calldata hints)
        external
        returns (bytes32);
}
