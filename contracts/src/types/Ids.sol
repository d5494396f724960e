// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

// Types for numbers that must not be confused with each other. The ABI has the underlying types.

/// @notice A task of the market: 1 ... tasks().
type TaskId is uint256;

/// @notice A game: 1 ... games().
type GameId is uint256;

/// @notice A segment of a task: 1 ... K. Segment i leads from leaf i - 1 of the segment tree to leaf i. 0
/// means none; 2^32 - 1, in a commitment, means "not yet known".
type SegmentIndex is uint32;

using {equals as ==, differs as !=} for SegmentIndex global;

function equals(SegmentIndex a, SegmentIndex b) pure returns (bool) {
    return SegmentIndex.unwrap(a) == SegmentIndex.unwrap(b);
}

function differs(SegmentIndex a, SegmentIndex b) pure returns (bool) {
    return SegmentIndex.unwrap(a) != SegmentIndex.unwrap(b);
}
