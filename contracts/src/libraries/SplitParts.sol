// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title Which blocks the words of a split cover: dispute.md section 5.
library SplitParts {
    /// @notice Maximum number of words of one split. If a word covers one block of 256 four-byte elements,
    /// 128 words cover a row of 32,768.
    uint256 internal constant MAX_WORDS = 128;

    /// @notice Blocks that one word covers when `blocks` blocks are split: the least power of MAX_WORDS for
    /// which MAX_WORDS words suffice.
    function span(uint256 blocks) internal pure returns (uint256 size) {
        size = 1;
        while (size * MAX_WORDS < blocks) size *= MAX_WORDS;
    }

    /// @notice Number of words in a split of the blocks [lo, hi).
    function count(uint32 lo, uint32 hi) internal pure returns (uint256) {
        uint256 size = span(hi - lo);
        return (hi - lo + size - 1) / size;
    }

    /// @notice The blocks [begin, end) of word number `part`, one of `count`.
    function range(uint32 lo, uint32 hi, uint8 part) internal pure returns (uint32 begin, uint32 end) {
        uint256 size = span(hi - lo);
        uint256 first = lo + part * size;
        return (uint32(first), first + size < hi ? uint32(first + size) : hi);
    }
}
