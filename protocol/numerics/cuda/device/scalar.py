"""Single-element operations of arithmetic.md sections 2, 3 and 8 in Triton: the counterpart of
native/scalar.h.

Kernels are compiled with floating-point fusion off (`launch.start`), divisions and square roots are the
correctly rounded ones, and constants are exact. NaN is made canonical where results are stored, because the
NaN that a GPU produces is 0x7fffffff.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def from_bits(bits):
    return bits.to(tl.float32, bitcast=True)


@triton.jit
def bits_of(x):
    return x.to(tl.int32, bitcast=True)


@triton.jit
def store_bits(x):
    """The bits of an f32; 0x7fc00000 for every NaN."""
    return tl.where(x == x, bits_of(x), 0x7FC00000)


@triton.jit
def canonical(x):
    return from_bits(store_bits(x))


@triton.jit
def magnitude(x):
    """The bits of x without the sign. They sort as the magnitudes do, with NaN above infinity."""
    return bits_of(x) & 0x7FFFFFFF


@triton.jit
def op_add(x, y):
    return x + y


@triton.jit
def op_sub(x, y):
    return x - y


@triton.jit
def op_mul(x, y):
    return x * y


@triton.jit
def op_div(x, y):
    return tl.div_rn(x, y)


@triton.jit
def op_sqrt(x):
    return tl.sqrt_rn(x)


@triton.jit
def op_neg(x):
    return from_bits(bits_of(x) ^ -0x80000000)


@triton.jit
def op_abs(x):
    return from_bits(magnitude(x))


# In the lists the second operand is never NaN; if the first is NaN, it is the result. As in native/scalar.h.
@triton.jit
def op_minimum(x, y):
    return tl.where(y < x, y, x) + 0.0


@triton.jit
def op_maximum(x, y):
    return tl.where(y > x, y, x) + 0.0


@triton.jit
def op_rint(x):
    """The nearest integer, ties to even, with the sign of x. From 2^23 on every f32 is an integer."""
    sign = bits_of(x) & -0x80000000
    limit = from_bits(sign | 0x4B000000)
    near = (x + limit) - limit
    whole = from_bits(magnitude(near) | sign)
    return tl.where(magnitude(x) < 0x4B000000, whole, x)


@triton.jit
def op_lt(x, y):
    return x < y


@triton.jit
def op_eq(x, y):
    return x == y


@triton.jit
def op_select(condition, x, y):
    return tl.where(condition, x, y)


@triton.jit
def op_add_i32(x, y):
    return x + y


@triton.jit
def op_sub_i32(x, y):
    return x - y


@triton.jit
def op_and_i32(x, y):
    return x & y


@triton.jit
def op_or_i32(x, y):
    return x | y


@triton.jit
def op_shr_i32(x, y):
    return x >> y


@triton.jit
def op_i32_to_f32(x):
    return x.to(tl.float32)


# Lists cast values below 2^22 in magnitude; for other values their result does not depend on the integer.
@triton.jit
def op_f32_to_i32(x):
    return bits_of(x + 12582912.0) - 0x4B400000


@triton.jit
def op_power_of_two(k):
    return from_bits((k + 127) << 23)


@triton.jit
def op_scale(x, k):
    """x * 2^k for |k| <= 250, computed as (x * 2^half) * 2^(k - half) with half = k >> 1.

    The result is rounded only once if k >= 0, or if the first product is at least 2^-126 in magnitude.
    """
    half = k >> 1
    return (x * op_power_of_two(half)) * op_power_of_two(k - half)


# --- arithmetic.md section 3 ------------------------------------------------------------------------------------------


@triton.jit
def exponent_of(largest):
    """A row's exponent, from the bits of its largest magnitude: at least -95, or 32767 for a NaN or an infinity."""
    e = (largest >> 23) - 126
    e = tl.where(e < -95, -95, e)
    return tl.where(largest >= 0x7F800000, 32767, e)


@triton.jit
def factor_of(e, p):
    """2^(p - e) as f32. 1 if `e` is the sentinel 32767, because the results are then NaN whatever the factor."""
    return op_power_of_two(tl.where(e == 32767, 0, p - e))


@triton.jit
def whole(x, factor):
    """rint(x * factor) as i32; 0 for NaN and for results of magnitude 2^31 or more. Exact if x is in the row
    whose exponent gave `factor`.
    """
    m = op_rint(x * factor)
    return tl.where(magnitude(m) < 0x4F000000, m, 0.0).to(tl.int32)


@triton.jit
def power64(k):
    """2^k as float64, for |k| < 1022, built from bits."""
    return ((k + 1023).to(tl.int64) << 52).to(tl.float64, bitcast=True)


@triton.jit
def jam(x):
    """Replace the i64 x by an i64 that float64 holds exactly. If both are scaled by the same power of two,
    they round to the same f32: section 8.
    """
    low = x & 0x7FF
    sticky = (x - low) | tl.where(low != 0, 1024, 0).to(tl.int64)
    small = (x < 9007199254740992) & (x > -9007199254740992)
    return tl.where(small, x, sticky)


@triton.jit
def round_scaled(total, e):
    """f32 round(total * 2^e), one rounding from the exact i64."""
    return (jam(total).to(tl.float64) * power64(e)).to(tl.float32)


@triton.jit
def round_sum(total, e):
    """A row's sum as f32, from `total`, the sum of its 30-bit integers: section 5. NaN if `e` is the sentinel
    32767.
    """
    return tl.where(e == 32767, float("nan"), round_scaled(total, tl.where(e == 32767, 0, e) - 30))
