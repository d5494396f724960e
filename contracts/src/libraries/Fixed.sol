// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {BytesLanes} from "./BytesLanes.sol";
import {Float32} from "./Float32.sol";
import {Lanes} from "./Lanes.sol";

/// @title Fixed-point rows with a power-of-two scale: arithmetic.md sections 3 to 5.
/// @notice Exponents, quantised values, and the exact reductions of one block (a chunk along the last axis).
/// @dev All functions are total in the values. They revert only on bytes that are not a whole number of
/// elements, on two blocks whose lengths do not fit each other, or on an empty block that should have a
/// maximum: those are ill-formed proofs, not operands.
library Fixed {
    /// @notice A block has `length` bytes, which is not a multiple of `width`, the element's size.
    error BlockNotWhole(uint256 length, uint256 width);
    /// @notice The two blocks of a dot product have unequal lengths, or a block of `scatter_sum` is not twice
    /// as long as that of its indices.
    error BlockLengthsDiffer(uint256 left, uint256 right);
    /// @notice The maximum of an empty block was requested.
    error BlockEmpty();

    /// @notice Exponent of a row that holds a NaN or an infinity.
    int32 internal constant SENTINEL = 32767;
    /// @notice Least exponent: 2^(30+95) is still a normal f32, so every scale is a normal f32.
    int32 internal constant LEAST_EXPONENT = -95;

    // ------------------------------------------------------------------ rows and exponents

    /// @notice Exponent of a group whose largest |x| has these bits (sign ignored): max(-95, (bits >> 23) -
    /// 126), or the sentinel for an infinity or a NaN.
    function exponentOf(uint32 largest) internal pure returns (int32) {
        uint32 magnitude = largest & Float32.MAGNITUDE;
        if (magnitude >= Float32.INFINITY) return SENTINEL;
        // unchecked: an 8-bit field minus 126.
        unchecked {
            int32 e = int32(magnitude >> 23) - 126;
            return e < LEAST_EXPONENT ? LEAST_EXPONENT : e;
        }
    }

    /// @notice Exponent of one block of f32. The exponent of a longer row is the maximum over its blocks; the
    /// sentinel is above all others.
    function exponentBlock(bytes calldata x) internal pure returns (int32) {
        _requireWhole(x, 4);
        uint256 four;
        // unchecked: offsets are below the length. Magnitudes order as numbers, with NaN above all; zeros
        // after the end of a short block are the least magnitude.
        unchecked {
            for (uint256 offset; offset < x.length; offset += 32) {
                uint256 word = BytesLanes.swap32(BytesLanes.wordAt(x, offset));
                four = Lanes.most(four, word & Lanes.MAGNITUDES);
            }
        }
        return exponentOf(Lanes.mostOf(four));
    }

    /// @notice m_p(x) as i32: `toI32(rint(scale(x, p - e)))`, 0 under the sentinel and for NaN.
    /// @dev For an honest e (the exponent of a group that contains x) this is one scaling and one rint. The
    /// scaling is exact unless |x| 2^(p - e) is below the least normal f32; then rint gives 0. For any other
    /// e the scaling rounds once, like Float32.scale, and the cast saturates. So the result is defined for
    /// every e.
    function quantise(uint32 x, int32 e, int32 p) internal pure returns (int32) {
        return e == SENTINEL ? int32(0) : Float32.toI32(Float32.scale(x, int64(p) - int64(e)));
    }

    /// @notice m_p(x) as i64: `toI64(rint(scale(x, p - e)))`, 0 under the sentinel and for NaN.
    function toFixed(uint32 x, int32 e, int32 p) internal pure returns (int64) {
        return e == SENTINEL ? int64(0) : Float32.toI64(Float32.scale(x, int64(p) - int64(e)));
    }

    /// @notice round_f32(value * 2^(exponentX + exponentY - fraction)); NaN if either exponent is the
    /// sentinel.
    /// @dev A sum has one exponent: pass 0 for the other.
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
        // unchecked: arithmetic modulo 2^256 agrees with arithmetic modulo 2^64; indices are bounded by the
        // length.
        unchecked {
            uint256 whole = x.length / 32 * 32;
            uint256 total = _dotWords(x, y, whole);
            for (uint256 k = whole / 4; k < x.length / 4; ++k) {
                int256 left = int32(BytesLanes.u32At(x, k));
                total += uint256(left * int32(BytesLanes.u32At(y, k)));
            }
            sum = int64(uint64(total));
        }
    }

    /// @dev The sum over the first `length` bytes, a multiple of 32, modulo 2^64. Every element is taken as u
    /// = x + 2^31, which is not negative, so masks and shifts extract it from a word without a sign
    /// extension: sum x y = sum u v - 2^31 (sum u + sum v) + n 2^62. `sums` adds up fewer than 2^32 numbers
    /// below 2^32 in each of its four 64-bit lanes.
    function _dotWords(bytes calldata x, bytes calldata y, uint256 length)
        private
        pure
        returns (uint256 total)
    {
        uint256 odd = Lanes.ODD;
        uint256 sums;
        assembly ("memory-safe") {
            function biased(word) -> turned {
                let bytes_ := 0x00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff
                let pairs := 0x0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff
                let tops := 0x8000000080000000800000008000000080000000800000008000000080000000
                turned := or(and(shr(8, word), bytes_), shl(8, and(word, bytes_)))
                turned := xor(or(and(shr(16, turned), pairs), shl(16, and(turned, pairs))), tops)
            }
            let gap := sub(y.offset, x.offset)
            let end := add(x.offset, length)
            for { let at := x.offset } lt(at, end) { at := add(at, 32) } {
                let u := biased(calldataload(at))
                let v := biased(calldataload(add(at, gap)))
                let s := and(u, odd)
                let t := and(v, odd)
                sums := add(sums, add(s, t))
                total := add(total, mul(s, t))
                total := add(total, mul(shr(64, s), shr(64, t)))
                total := add(total, mul(shr(128, s), shr(128, t)))
                total := add(total, mul(shr(192, s), shr(192, t)))
                s := and(shr(32, u), odd)
                t := and(shr(32, v), odd)
                sums := add(sums, add(s, t))
                total := add(total, mul(s, t))
                total := add(total, mul(shr(64, s), shr(64, t)))
                total := add(total, mul(shr(128, s), shr(128, t)))
                total := add(total, mul(shr(192, s), shr(192, t)))
            }
        }
        // unchecked: modulo 2^64; n is length / 4.
        unchecked {
            sums += sums >> 128;
            sums += sums >> 64;
            total = total - (sums << 31) + (length << 60);
        }
    }

    /// @notice sum_k x_k over i64, wrapping.
    function sumBlock(bytes calldata x) internal pure returns (int64) {
        _requireWhole(x, 8);
        // unchecked: additions modulo 2^256 agree with additions modulo 2^64, so lanes need no masks. Zeros
        // after the end add nothing.
        unchecked {
            uint256 total;
            for (uint256 offset; offset < x.length; offset += 32) {
                uint256 word = BytesLanes.swap64(BytesLanes.wordAt(x, offset));
                total += word + (word >> 64) + (word >> 128) + (word >> 192);
            }
            return int64(uint64(total));
        }
    }

    /// @notice Sum of those i64 elements of `x` whose i32 index in `indices` equals `place`, wrapping.
    function scatterBlock(bytes calldata indices, bytes calldata x, uint32 place)
        internal
        pure
        returns (int64)
    {
        if (x.length != 2 * indices.length) revert BlockLengthsDiffer(indices.length, x.length);
        _requireWhole(indices, 4);
        // unchecked: additions modulo 2^256 agree with additions modulo 2^64. Zeros of x after the end add
        // nothing, for any index there.
        unchecked {
            uint256 wanted = BytesLanes.swap32(uint256(place) * Lanes.ONES);
            uint256 total;
            for (uint256 offset; offset < indices.length; offset += 32) {
                // A lane is zero where the index is `place`.
                uint256 i = BytesLanes.wordAt(indices, offset) ^ wanted;
                uint256 a = BytesLanes.swap64(BytesLanes.wordAt(x, 2 * offset));
                uint256 b = BytesLanes.swap64(BytesLanes.wordAt(x, 2 * offset + 32));
                assembly ("memory-safe") {
                    total := add(total, mul(iszero(shr(224, i)), shr(192, a)))
                    total := add(total, mul(iszero(and(shr(192, i), 0xffffffff)), shr(128, a)))
                    total := add(total, mul(iszero(and(shr(160, i), 0xffffffff)), shr(64, a)))
                    total := add(total, mul(iszero(and(shr(128, i), 0xffffffff)), a))
                    total := add(total, mul(iszero(and(shr(96, i), 0xffffffff)), shr(192, b)))
                    total := add(total, mul(iszero(and(shr(64, i), 0xffffffff)), shr(128, b)))
                    total := add(total, mul(iszero(and(shr(32, i), 0xffffffff)), shr(64, b)))
                    total := add(total, mul(iszero(and(i, 0xffffffff)), b))
                }
            }
            return int64(uint64(total));
        }
    }

    /// @notice The largest f32 of the block, plus +0.0; NaN if any is NaN. Blocks fold with Float32.max.
    function maxBlock(bytes calldata x) internal pure returns (uint32) {
        (uint32 value,) = _largest(x);
        return value == Float32.SIGN ? 0 : value;
    }

    /// @notice The element that `argmax` selects in the block: the first NaN, otherwise the first element
    /// equal to the maximum (both zeros count as equal). Returns its canonical bits and its index within the
    /// block.
    function argmaxBlock(bytes calldata x) internal pure returns (uint32 value, uint256 index) {
        (value, index) = _largest(x);
        if (Float32.isNaN(value)) return (value, index);
        // Compared in little-endian form; zeros are compared without the sign.
        uint256 compared = Float32.isZero(value) ? BytesLanes.swap32(Lanes.MAGNITUDES) : type(uint256).max;
        // unchecked: offsets are bounded by the length; zeros after the end come after the element that is
        // found.
        unchecked {
            uint256 wanted = BytesLanes.swap32(value * Lanes.ONES) & compared;
            uint256 offset;
            uint256 hits;
            while (true) {
                hits = Lanes.zeros((BytesLanes.wordAt(x, offset) & compared) ^ wanted);
                if (hits != 0) break;
                offset += 32;
            }
            index = offset / 4 + Lanes.first(hits);
        }
        value = BytesLanes.u32At(x, index);
    }

    /// @dev If the block has a NaN: NaN and the index of the first one. Otherwise the largest value (if that
    /// is a zero and both zeros occur, +0) and index 0, which means nothing.
    function _largest(bytes calldata x) private pure returns (uint32, uint256) {
        _requireWhole(x, 4);
        if (x.length == 0) revert BlockEmpty();
        uint256 four;
        // unchecked: offsets are bounded by the length.
        unchecked {
            for (uint256 offset; offset < x.length; offset += 32) {
                uint256 word = BytesLanes.swap32(BytesLanes.wordAt(x, offset));
                uint256 nans = Lanes.nans(word);
                if (nans != 0) return (Float32.NAN, offset / 4 + Lanes.first(nans));
                uint256 keys = Lanes.keys(word);
                uint256 left = x.length - offset;
                if (left < 32) keys &= ~(type(uint256).max >> (8 * left)); // key 0 loses to every element
                four = Lanes.most(four, keys);
            }
        }
        return (Lanes.fromKey(Lanes.mostOf(four)), 0);
    }

    /// @notice Whether a later block's best element displaces an earlier block's: only a NaN over a non-NaN,
    /// or a strictly larger value, does.
    function displaces(uint32 later, uint32 earlier) internal pure returns (bool) {
        if (Float32.isNaN(earlier)) return false;
        return Float32.isNaN(later) || Float32.lt(earlier, later);
    }

    function _requireWhole(bytes calldata x, uint256 width) private pure {
        if (x.length % width != 0) revert BlockNotWhole(x.length, width);
    }
}
