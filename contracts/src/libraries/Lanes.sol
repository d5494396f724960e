// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title Operations on the eight 32-bit lanes of a word at once, the first lane highest, for reductions of
/// f32 or i32 blocks.
/// @dev No lane ever carries or borrows into its neighbour; each function says why.
library Lanes {
    /// @notice 1 in every lane.
    uint256 internal constant ONES = 0x0000000100000001000000010000000100000001000000010000000100000001;
    /// @notice The top bit of every lane.
    uint256 internal constant TOPS = ONES << 31;
    /// @notice All bits except the top one of every lane.
    uint256 internal constant MAGNITUDES = ~TOPS;
    /// @notice The lanes with odd numbers: the low halves of 64-bit lanes.
    uint256 internal constant ODD = 0x00000000ffffffff00000000ffffffff00000000ffffffff00000000ffffffff;

    /// @dev Added to a magnitude, this reaches the top bit exactly if the magnitude exceeds 0x7f800000.
    uint256 private constant ABOVE_INFINITY = ONES * 0x007fffff;
    uint256 private constant TOPS_OF_64 = 0x8000000000000000800000000000000080000000000000008000000000000000;

    /// @notice The top bit of every lane that holds an f32 NaN.
    function nans(uint256 word) internal pure returns (uint256) {
        // unchecked: a magnitude is below 2^31, so that the sum stays in its lane.
        unchecked {
            return ((word & MAGNITUDES) + ABOVE_INFINITY) & TOPS;
        }
    }

    /// @notice The top bit of every lane that is zero, in either byte order.
    function zeros(uint256 word) internal pure returns (uint256) {
        // unchecked: the sum of two numbers below 2^31 stays in its lane.
        unchecked {
            return ~(((word & MAGNITUDES) + MAGNITUDES) | word) & TOPS;
        }
    }

    /// @notice The number of the first lane whose top bit is set; at least one must be.
    function first(uint256 tops) internal pure returns (uint256 lane) {
        // unchecked: at most seven.
        unchecked {
            for (; tops >> 255 == 0; tops <<= 32) {
                ++lane;
            }
        }
    }

    /// @notice Keys that order like the f32 values: negative values inverted, the others with their top bit
    /// set. The key of -0 is one below that of +0; only a NaN can have key 0.
    function keys(uint256 word) internal pure returns (uint256) {
        // unchecked: the top bit of a lane minus its lowest.
        unchecked {
            uint256 signs = word & TOPS;
            return word ^ (TOPS | (signs - (signs >> 31)));
        }
    }

    /// @notice The f32 of a key.
    function fromKey(uint32 key) internal pure returns (uint32) {
        return key >> 31 == 1 ? key ^ 0x80000000 : ~key;
    }

    /// @notice The largest of `least` and two of the lanes of `word`, in each of four 64-bit lanes.
    function most(uint256 least, uint256 word) internal pure returns (uint256) {
        return _larger(_larger(least, word & ODD), (word >> 32) & ODD);
    }

    /// @notice The largest of the four.
    function mostOf(uint256 four) internal pure returns (uint32) {
        four = _larger(four, four >> 128);
        return uint32(_larger(four, four >> 64));
    }

    /// @dev The larger number in each lane of 64 bits; all are below 2^63.
    function _larger(uint256 x, uint256 y) private pure returns (uint256) {
        // unchecked: with its top bit set, a lane does not borrow; the bit remains where x >= y.
        unchecked {
            uint256 chosen = ((x | TOPS_OF_64) - y) & TOPS_OF_64;
            return y ^ ((x ^ y) & (chosen - (chosen >> 63)));
        }
    }
}
