// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";

/// @title IEEE-754 binary32 on bit patterns: arithmetic.md section 2.
/// @notice An f32 is a `uint32` with its bits. The operations are total: they are defined for every bit
/// pattern, round to nearest even, keep subnormals, give 0x7fc00000 for every NaN result, and never revert.
/// @dev A finite value is `(-1)^sign * mantissa * 2^exponent` with an unbounded integer mantissa. Sums,
/// products, quotients, roots, casts from integers and scalings by powers of two produce an exact (or
/// sticky) triple of this form; only `round` drops bits of it. The operations that round to integers drop
/// bits themselves.
library Float32 {
    uint32 internal constant NAN = 0x7fc00000;
    uint32 internal constant INFINITY = 0x7f800000;
    uint32 internal constant SIGN = 0x80000000;
    uint32 internal constant MAGNITUDE = 0x7fffffff;
    uint32 internal constant ONE = 0x3f800000;

    /// @dev Exponent of the lowest mantissa bit of a subnormal: 2^-149 is the smallest positive f32.
    int256 private constant LEAST = -149;
    /// @dev Before a quotient or root the mantissa is shifted up by 64 bits. The result has at least 32
    /// significant bits, of which 24 are kept, so an inexact remainder can be merged into the last bit
    /// without touching the rounding bit.
    uint256 private constant GUARD = 64;

    // ------------------------------------------------------------------ arithmetic

    /// @notice x + y.
    function add(uint32 x, uint32 y) internal pure returns (uint32) {
        if (isNaN(x) || isNaN(y)) return NAN;
        if (isInfinite(x)) return isInfinite(y) && x != y ? NAN : x;
        if (isInfinite(y)) return y;
        // Let x be the operand with the larger exponent.
        if ((x & INFINITY) < (y & INFINITY)) (x, y) = (y, x);
        (uint256 mx, int256 ex) = decode(x);
        (uint256 my, int256 ey) = decode(y);
        // unchecked: exponents lie in [-149, 104], aligned mantissas below 2^(24 + 64).
        unchecked {
            uint256 distance = uint256(ex - ey);
            if (distance > GUARD) {
                // y is far below x's last bit: it only matters whether y is zero.
                my = my == 0 ? 0 : 1;
                distance = GUARD;
            }
            int256 sum = _signed(x, mx << distance) + _signed(y, my);
            // An exact zero is -0 only when both operands are -0.
            if (sum == 0) return x & y & SIGN;
            return round(sum < 0 ? SIGN : 0, _magnitude(sum), ex - int256(distance));
        }
    }

    /// @notice x - y.
    function sub(uint32 x, uint32 y) internal pure returns (uint32) {
        return add(x, y ^ SIGN);
    }

    /// @notice x * y.
    function mul(uint32 x, uint32 y) internal pure returns (uint32) {
        if (isNaN(x) || isNaN(y)) return NAN;
        uint32 sign = (x ^ y) & SIGN;
        if (isInfinite(x) || isInfinite(y)) return isZero(x) || isZero(y) ? NAN : sign | INFINITY;
        (uint256 mx, int256 ex) = decode(x);
        (uint256 my, int256 ey) = decode(y);
        // unchecked: a product of two 24-bit mantissas.
        unchecked {
            return round(sign, mx * my, ex + ey);
        }
    }

    /// @notice x / y. A zero divisor gives an infinity; 0/0 and inf/inf give NaN.
    function div(uint32 x, uint32 y) internal pure returns (uint32) {
        if (isNaN(x) || isNaN(y)) return NAN;
        uint32 sign = (x ^ y) & SIGN;
        if (isInfinite(x)) return isInfinite(y) ? NAN : sign | INFINITY;
        if (isInfinite(y)) return sign;
        if (isZero(y)) return isZero(x) ? NAN : sign | INFINITY;
        (uint256 mx, int256 ex) = decode(x);
        (uint256 my, int256 ey) = decode(y);
        // unchecked: my is not zero; mx << 64 is below 2^88.
        unchecked {
            uint256 dividend = mx << GUARD;
            uint256 quotient = dividend / my;
            if (quotient * my != dividend) quotient |= 1;
            return round(sign, quotient, ex - ey - int256(GUARD));
        }
    }

    /// @notice Square root. sqrt(-0) is -0, any other negative gives NaN.
    function sqrt(uint32 x) internal pure returns (uint32) {
        if (isNaN(x)) return NAN;
        if (isZero(x)) return x;
        if (x & SIGN != 0) return NAN;
        if (isInfinite(x)) return x;
        (uint256 m, int256 e) = decode(x);
        // unchecked: m is below 2^25 after the step to an even exponent.
        unchecked {
            if (e & 1 != 0) (m, e) = (m << 1, e - 1);
            uint256 radicand = m << GUARD;
            uint256 root = Math.sqrt(radicand);
            if (root * root != radicand) root |= 1;
            return round(0, root, e / 2 - int256(GUARD / 2));
        }
    }

    /// @notice -x; NaN stays the canonical NaN.
    function neg(uint32 x) internal pure returns (uint32) {
        return isNaN(x) ? NAN : x ^ SIGN;
    }

    /// @notice |x|; NaN stays the canonical NaN.
    function abs(uint32 x) internal pure returns (uint32) {
        return isNaN(x) ? NAN : x & MAGNITUDE;
    }

    /// @notice The smaller of both, plus +0.0; NaN if either is NaN.
    function min(uint32 x, uint32 y) internal pure returns (uint32) {
        if (isNaN(x) || isNaN(y)) return NAN;
        return _plusZero(order(y) < order(x) ? y : x);
    }

    /// @notice The larger of both, plus +0.0; NaN if either is NaN.
    function max(uint32 x, uint32 y) internal pure returns (uint32) {
        if (isNaN(x) || isNaN(y)) return NAN;
        return _plusZero(order(x) < order(y) ? y : x);
    }

    // ------------------------------------------------------------------ comparison (false on NaN)

    /// @notice x < y.
    function lt(uint32 x, uint32 y) internal pure returns (bool) {
        return !isNaN(x) && !isNaN(y) && order(x) < order(y);
    }

    /// @notice x <= y.
    function le(uint32 x, uint32 y) internal pure returns (bool) {
        return !isNaN(x) && !isNaN(y) && order(x) <= order(y);
    }

    /// @notice x == y; -0 equals +0.
    function eq(uint32 x, uint32 y) internal pure returns (bool) {
        return !isNaN(x) && !isNaN(y) && order(x) == order(y);
    }

    // ------------------------------------------------------------------ rounding to integers

    /// @notice The largest integer not above x, as f32. Zeros keep their sign.
    function floor(uint32 x) internal pure returns (uint32) {
        if (isNaN(x)) return NAN;
        uint32 biased = (x >> 23) & 0xff;
        // From 2^23 on every f32 is an integer.
        if (biased >= 150 || isZero(x)) return x;
        if (biased < 127) return x & SIGN == 0 ? 0 : SIGN | ONE;
        // unchecked: 1 <= 150 - biased <= 23. Increasing a magnitude by one unit may carry into the exponent
        // field, which correctly gives the next power of two.
        unchecked {
            uint32 unit = uint32(1) << (150 - biased);
            uint32 fraction = x & (unit - 1);
            uint32 truncated = x ^ fraction;
            return fraction != 0 && x & SIGN != 0 ? truncated + unit : truncated;
        }
    }

    /// @notice The nearest integer as f32, ties to even. The sign is kept, even for a zero result.
    function rint(uint32 x) internal pure returns (uint32) {
        if (isNaN(x)) return NAN;
        (uint256 m, int256 e) = decode(x);
        if (e >= 0) return x;
        // unchecked: e lies in [-149, -1].
        unchecked {
            return round(x & SIGN, shiftRightEven(m, uint256(-e)), 0);
        }
    }

    /// @notice The nearest integer, ties to even. NaN gives 0. An infinity gives +-2^128, which is beyond
    /// every finite f32.
    function toInteger(uint32 x) internal pure returns (int256) {
        if (isNaN(x)) return 0;
        (uint256 m, int256 e) = decode(x);
        // unchecked: m < 2^24 and e <= 105 (an infinity decodes as 2^23 * 2^105), so shifts stay below 2^129.
        unchecked {
            return _signed(x, e >= 0 ? m << uint256(e) : shiftRightEven(m, uint256(-e)));
        }
    }

    /// @notice Cast to i32: nearest even, saturating to [-2^31, 2^31 - 1]; NaN gives 0.
    function toI32(uint32 x) internal pure returns (int32) {
        int256 v = toInteger(x);
        if (v > type(int32).max) return type(int32).max;
        if (v < type(int32).min) return type(int32).min;
        return int32(v);
    }

    /// @notice Cast to i64: nearest even, saturating to [-2^63, 2^63 - 1]; NaN gives 0.
    function toI64(uint32 x) internal pure returns (int64) {
        int256 v = toInteger(x);
        if (v > type(int64).max) return type(int64).max;
        if (v < type(int64).min) return type(int64).min;
        return int64(v);
    }

    // ------------------------------------------------------------------ from integers, powers of two

    /// @notice Cast of any integer (u8, i32, u32, i64, bool as 0 or 1) with one rounding; 0 gives +0.
    function fromInteger(int256 v) internal pure returns (uint32) {
        return roundScaled(v, 0);
    }

    /// @notice x * 2^k with one rounding, for any k.
    function scale(uint32 x, int64 k) internal pure returns (uint32) {
        if (isNaN(x)) return NAN;
        if (isZero(x) || isInfinite(x)) return x;
        (uint256 m, int256 e) = decode(x);
        // unchecked: an i64 plus a small number fits int256.
        unchecked {
            return round(x & SIGN, m, e + k);
        }
    }

    /// @notice value * 2^exponent with one rounding. 0 gives +0; nonzero underflow gives a zero, and overflow
    /// an infinity, with its sign.
    function roundScaled(int256 value, int64 exponent) internal pure returns (uint32) {
        return round(value < 0 ? SIGN : 0, _magnitude(value), exponent);
    }

    // ------------------------------------------------------------------ classes and parts

    function isNaN(uint32 x) internal pure returns (bool) {
        return x & MAGNITUDE > INFINITY;
    }

    function isInfinite(uint32 x) internal pure returns (bool) {
        return x & MAGNITUDE == INFINITY;
    }

    function isZero(uint32 x) internal pure returns (bool) {
        return x & MAGNITUDE == 0;
    }

    /// @notice x with every NaN replaced by 0x7fc00000, as on each load and store.
    function canonical(uint32 x) internal pure returns (uint32) {
        return isNaN(x) ? NAN : x;
    }

    /// @notice An integer that orders non-NaN values like their numerical values: the magnitude bits with the
    /// sign. Both zeros give 0.
    function order(uint32 x) internal pure returns (int256) {
        return _signed(x, x & MAGNITUDE);
    }

    /// @notice Mantissa and exponent of a finite x: |x| = m * 2^e, m < 2^24, -149 <= e <= 104.
    function decode(uint32 x) internal pure returns (uint256 m, int256 e) {
        // unchecked: an 8-bit field minus 150.
        unchecked {
            uint256 biased = (x >> 23) & 0xff;
            m = x & 0x7fffff;
            if (biased == 0) return (m, LEAST);
            return (m | 0x800000, int256(biased) - 150);
        }
    }

    /// @notice The f32 nearest to (-1)^sign * m * 2^e, ties to even. `sign` is 0 or the sign bit; |e| <
    /// 2^254.
    function round(uint32 sign, uint256 m, int256 e) internal pure returns (uint32) {
        if (m == 0) return sign;
        // unchecked: e is far from the ends of int256; the result's fields are bounded as noted.
        unchecked {
            int256 top = int256(Math.log2(m)) + e;
            if (top > 127) return sign | INFINITY;
            // Exponent of the last kept bit: 24 significant bits, or fewer for a subnormal.
            int256 last = top - 23 < LEAST ? LEAST : top - 23;
            // The shift up is at most 23 bits: m then has at most 24 bits.
            uint256 kept = last > e ? shiftRightEven(m, uint256(last - e)) : m << uint256(e - last);
            // A normal `kept` has bit 23 set, which adds one to the exponent field; a subnormal has field 0.
            // With the same addition, a carry from rounding steps to the next binade or to infinity.
            return sign | uint32((uint256(last - LEAST) << 23) + kept);
        }
    }

    /// @notice m / 2^shift to the nearest integer, ties to even, for any shift >= 1.
    function shiftRightEven(uint256 m, uint256 shift) internal pure returns (uint256 kept) {
        // Above 256 the quotient is below one half.
        if (shift > 256) return 0;
        // unchecked: for shift 256, 1 << 256 is 0 and the mask wraps to all ones, as intended.
        unchecked {
            kept = m >> shift;
            uint256 rest = m & ((1 << shift) - 1);
            uint256 half = 1 << (shift - 1);
            if (rest > half || (rest == half && kept & 1 == 1)) ++kept;
        }
    }

    /// @dev Adding +0.0 changes only -0.
    function _plusZero(uint32 x) private pure returns (uint32) {
        return x == SIGN ? 0 : x;
    }

    function _signed(uint32 x, uint256 magnitude) private pure returns (int256) {
        // unchecked: callers' magnitudes are below 2^130.
        unchecked {
            return x & SIGN == 0 ? int256(magnitude) : -int256(magnitude);
        }
    }

    function _magnitude(int256 v) private pure returns (uint256) {
        // unchecked: -(-2^255) wraps to itself, which as an unsigned number is the intended 2^255.
        unchecked {
            return uint256(v < 0 ? -v : v);
        }
    }
}
