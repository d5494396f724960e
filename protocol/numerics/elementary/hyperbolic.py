"""`tanh` and `sigmoid` as fixed lists of section-2 operations: arithmetic.md section 6.

Both are quotients of exponentials that keep relative accuracy where the result is small.
"""

from __future__ import annotations

from protocol.numerics.elementary.exponential import EXP_POLYNOMIAL
from protocol.numerics.elementary.operations import (
    LN2,
    LN2_LOW,
    LOG2_E,
    MINUS_LN2_HIGH,
    MINUS_LOG2_E,
    ONE,
    TWO,
    ZERO,
    Operations,
    V,
    polynomial,
)

TANH_LAST = 0x41180000  # 9.5: 1 - tanh(9.02) = 2^-25, so from there on the nearest f32 is 1
EXPM1_POLYNOMIAL = (0x3EFFFFFF, 0x3E2AAA55, 0x3D2AAB40, 0x3C09167F, 0x3AB5F58B)
"""(e^r - 1 - r) / r^2 on |r| <= 1.01 ln(2)/2, lowest power first; error relative to e^r - 1 2^-25.7."""

SIGMOID_FIRST = 0xC2D00000  # -104: e^-104 = 2^-150.04 rounds to 0
SIGMOID_LAST = 0x41A00000  # 20: e^-20 = 2^-28.9 is lost beside 1
SIGMOID_UNIT = 0x2F800000  # 2^-32: 2^-32 e^104 = 2^118 does not overflow


def tanh(o: Operations[V], x: V) -> V:
    """Hyperbolic tangent: odd, +-1 from |x| = 9.02 on and at infinities, zeros and subnormals unchanged, NaN to NaN.

    With a = |x| and m = e^(2a) - 1, tanh a = m / (m + 2). 2a = n ln 2 + r; m = 2^n (e^r - 1) + (2^n - 1).
    """
    twice = o.minimum(o.abs(x), o.f32(TANH_LAST))
    twice = o.add(twice, twice)
    n = o.rint(o.mul(twice, o.f32(LOG2_E)))
    r = o.sub(twice, o.mul(n, o.f32(LN2)))
    p = o.add(r, o.mul(o.mul(r, r), polynomial(o, EXPM1_POLYNOMIAL, r)))
    power = o.scale(o.f32(ONE), o.f32_to_i32(n))
    m = o.add(o.mul(p, power), o.sub(power, o.f32(ONE)))
    t = o.div(m, o.add(m, o.f32(TWO)))
    signed = o.select(o.lt(x, o.f32(ZERO)), o.neg(t), t)
    return o.select(o.eq(x, o.f32(ZERO)), x, signed)


def sigmoid(o: Operations[V], x: V) -> V:
    """1 / (1 + e^-x): +0 from -inf on, gradual underflow, 1 from 17.4 on, NaN to NaN. At most 2 ulp.

    As 2^-32 / (2^-32 + 2^-32 e^-x), so that e^-x does not overflow before the result underflows. -x = n ln 2 + r.
    """
    bounded = o.minimum(o.maximum(x, o.f32(SIGMOID_FIRST)), o.f32(SIGMOID_LAST))
    n = o.rint(o.mul(bounded, o.f32(MINUS_LOG2_E)))
    r = o.sub(o.sub(o.mul(n, o.f32(MINUS_LN2_HIGH)), bounded), o.mul(n, o.f32(LN2_LOW)))
    tail = o.mul(o.mul(r, r), polynomial(o, EXP_POLYNOMIAL, r))
    e = o.scale(o.add(o.f32(ONE), o.add(r, tail)), o.sub_i32(o.f32_to_i32(n), o.i32(32)))
    return o.div(o.f32(SIGMOID_UNIT), o.add(o.f32(SIGMOID_UNIT), e))
