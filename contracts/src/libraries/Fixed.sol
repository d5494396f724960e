// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {BytesLanes} from "./BytesLanes.sol";
import {Float32} from "./Float32.sol";

/// @title Fixed-point rows with a power-of-two scale: arithmetic.md sections 3 to 5.
/// @notice Exponents, quantised values, and the exact reductions of one block (a chunk along the last axis).
/// @dev All functions are total in the values. They revert only on bytes that hold no whole number of elements, or on
/// two blocks of unequal length: those are ill-formed proofs, not operands.
library Fixed {
    /// @notice A block has `length` bytes, which is not a multiple of `width`, the element's size.
    error BlockNotWhole(uint256 length, uint256 width);
    /// @notice The two blocks of a dot product have unequal lengths.
    error BlockLengthsDiffer(uint256 left, uint256 right);
    /// @notice A maximum of nothing was asked for.
    error BlockEmpty();

    /// @notice Exponent of a row that holds a NaN or an infinity.
    int32 internal constant SENTINEL = 32767;
    /// @notice Least exponent: 2^(30+95) is still a normal f32, so every scale is one.
    int32 internal constant LEAST_EXPONENT = -95;

    // ------------------------------------------------------------------ rows and exponents

    /// @notice Exponent of a group whose largest |x| has these bits (sign ignored): max(-95, (bits >> 23) - 126).
    function exponentOf(uint32 largest) internal pure returns (int32) {
        uint32 magnitude = largest & Float32.MAGNITUDE;
        if (magnitude >= Float32.INFINITY) return SENTINEL;
        // unchecked: an 8-bit field minus 126.
        unchecked {
            int32 e = int32(magnitude >> 23) - 126;
            return e < LEAST_EXPONENT ? LEAST_EXPONENT : e;
        }
    }

    /// @notice Exponent of one block of f32. The exponent of a longer row is the maximum of its blocks' (the sentinel
    /// is above all others).
    function exponentBlock(bytes calldata x) internal pure returns (int32) {
        _requireWhole(x, 4);
        uint256 largest;
        // unchecked: offsets below the length. Magnitudes order as numbers, a NaN above all; zeros behind the end
        // of a short block are the least magnitude.
        unchecked {
            for (uint256 offset; offset < x.length; offset += 32) {
                uint256 word = BytesLanes.swap32(BytesLanes.wordAt(x, offset));
                for (uint256 lane; lane < 8; ++lane) {
                    uint256 magnitude = (word >> 224) & Float32.MAGNITUDE;
                    if (magnitude > largest) largest = magnitude;
                    word <<= 32;
                }
            }
        }
        return exponentOf(uint32(largest));
    }

    /// @notice m_p(x) as i32: `toI32(rint(scale(x, p - e)))`, 0 under the sentinel and for NaN.
    /// @dev For an honest e (that of a group which holds x) this is one exact scaling and one rint. For any other e
    /// the scaling rounds once, like Float32.scale, and the cast saturates: defined for every e.
    function quantise(uint32 x, int32 e, int32 p) internal pure returns (int32) {
        return e == SENTINEL ? int32(0) : Float32.toI32(Float32.scale(x, int64(p) - int64(e)));
    }

    /// @notice m_p(x) as i64: `toI64(rint(scale(x, p - e)))`, 0 under the sentinel and for NaN.
    function toFixed(uint32 x, int32 e, int32 p) internal pure returns (int64) {
        return e == SENTINEL ? int64(0) : Float32.toI64(Float32.scale(x, int64(p) - int64(e)));
    }

    /// @notice round_f32(value * 2^(exponentX + exponentY - fraction)); NaN if either exponent is the sentinel.
    /// @dev A sum has one exponent: give 0 as the other.
    function roundScaled(int64 value, int32 exponentX, int32 exponentY, int32 fraction)
        internal
        pure
        returns (uint32)
    {
        if (exponentX == SENTINEL || exponentY == SENTINEL) return Float32.NAN;
        return Float32.roundScaled(value, int64(exponentX) + int64(exponentY) - int64(fraction));
    }

    // ------------------------------------------------------------------ reductions of one block

    /// @notice sum_k x_k * y_k over i32, wrapping to i64.
    function dotBlock(bytes calldata x, bytes calldata y) internal pure returns (int64 sum) {
        if (x.length != y.length) revert BlockLengthsDiffer(x.length, y.length);
        _requireWhole(x, 4);
        // unchecked: additions modulo 2^256 agree with additions modulo 2^64. Zeros behind the end add nothing.
        unchecked {
            uint256 total;
            for (uint256 offset; offset < x.length; offset += 32) {
                uint256 a = BytesLanes.swap32(BytesLanes.wordAt(x, offset));
                uint256 b = BytesLanes.swap32(BytesLanes.wordAt(y, offset));
                // Eight signed lanes; signextend(3, .) reads the lowest 32 bits and ignores what is above them.
                assembly ("memory-safe") {
                    total := add(total, mul(signextend(3, a), signextend(3, b)))
                    total := add(total, mul(signextend(3, shr(32, a)), signextend(3, shr(32, b))))
                    total := add(total, mul(signextend(3, shr(64, a)), signextend(3, shr(64, b))))
                    total := add(total, mul(signextend(3, shr(96, a)), signextend(3, shr(96, b))))
                    total := add(total, mul(signextend(3, shr(128, a)), signextend(3, shr(128, b))))
                    total := add(total, mul(signextend(3, shr(160, a)), signextend(3, shr(160, b))))
                    total := add(total, mul(signextend(3, shr(192, a)), signextend(3, shr(192, b))))
                    total := add(total, mul(signextend(3, shr(224, a)), signextend(3, shr(224, b))))
                }
            }
            sum = int64(uint64(total));
        }
    }

    /// @notice sum_k x_k over i64, wrapping.
    function sumBlock(bytes calldata x) internal pure returns (int64) {
        _requireWhole(x, 8);
        // unchecked: additions modulo 2^256 agree with additions modulo 2^64, so lanes need no masks. Zeros behind
        // the end add nothing.
        unchecked {
            uint256 total;
            for (uint256 offset; offset < x.length; offset += 32) {
                uint256 word = BytesLanes.swap64(BytesLanes.wordAt(x, offset));
                total += word + (word >> 64) + (word >> 128) + (word >> 192);
            }
            return int64(uint64(total));
        }
    }

    /// @notice The largest f32 of the block, plus +0.0; NaN if any is NaN. Blocks fold with Float32.max.
    function maxBlock(bytes calldata x) internal pure returns (uint32) {
        (uint32 value,) = argmaxBlock(x);
        return value == Float32.SIGN ? 0 : value;
    }

    /// @notice The element that `argmax` names in the block: the first NaN, else the first of the maximum's elements
    /// (both zeros count as equal). Returns its canonical bits and its index within the block.
    function argmaxBlock(bytes calldata x) internal pure returns (uint32 value, uint256 index) {
        _requireWhole(x, 4);
        if (x.length == 0) revert BlockEmpty();
        value = BytesLanes.u32At(x, 0);
        if (Float32.isNaN(value)) return (Float32.NAN, 0);
        int256 best = Float32.order(value);
        // unchecked: offsets and indices are bounded by the length.
        unchecked {
            for (uint256 offset; offset < x.length; offset += 32) {
                uint256 word = BytesLanes.swap32(BytesLanes.wordAt(x, offset));
                uint256 lanes = x.length - offset < 32 ? (x.length - offset) / 4 : 8;
                for (uint256 lane; lane < lanes; ++lane) {
                    uint32 candidate = uint32(word >> 224);
                    if (Float32.isNaN(candidate)) return (Float32.NAN, offset / 4 + lane);
                    int256 rank = Float32.order(candidate);
                    if (rank > best) (best, value, index) = (rank, candidate, offset / 4 + lane);
                    word <<= 32;
                }
            }
        }
    }

    /// @notice Whether, in order, a later block's best element displaces an earlier one's: only a NaN over a non-NaN,
    /// or a strictly larger value, does.
    function displaces(uint32 later, uint32 earlier) internal pure returns (bool) {
        if (Float32.isNaN(earlier)) return false;
        return Float32.isNaN(later) || Float32.lt(earlier, later);
    }

    function _requireWhole(bytes calldata x, uint256 width) private pure {
        if (x.length % width != 0) revert BlockNotWhole(x.length, width);
    }
}
