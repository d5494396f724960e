"""`tanh` and `sigmoid` as fixed lists of section-2 operations: arithmetic.md section 6.

Both are quotients in which e^y occurs, with y = -2 |x| for `tanh` and y = -x for `sigmoid`. Let n be the
integer nearest to y / ln 2, and r = y - n ln 2, so |r| <= ln(2)/2. Then e^y = 2^n (1 + p) with p = e^r - 1.
e^y itself is never rounded: both denominators, and the numerator of `tanh`, are sums of 2^n, 2^n p and a
constant (for `sigmoid`, all times 2^-32). The sums are ordered so that only the last addition of each costs
half an ulp.
"""

from __future__ import annotations

from protocol.numerics.elementary.exponential import EXP_POLYNOMIAL
from protocol.numerics.elementary.operations import (
    LN2,
    LN2_LOW,
    LOG2_E,
    MINUS_LN2_HIGH,
    MINUS_LOG2_E,
    MINUS_TWO,
    ONE,
    Operations,
    V,
    copysign,
    polynomial,
)

TANH_FIRST = 0xC1980000  # -19 = -2 * 9.5: 1 - tanh(9.02) = 2^-25, so from there on the nearest f32 is 1
EXPM1_POLYNOMIAL = (0x3EFFFFFF, 0x3E2AAA55, 0x3D2AAB40, 0x3C09167F, 0x3AB5F58B)
"""(e^r - 1 - r) / r^2 on |r| <= 1.01 ln(2)/2, lowest power first.

The relative error of e^r - 1 is 2^-25.7.
"""

SIGMOID_FIRST = 0xC2D00000  # -104: e^-104 = 2^-150.04 rounds to 0
SIGMOID_LAST = 0x41A00000  # 20: e^-20 = 2^-28.9 added to 1 rounds to 1
SIGMOID_UNIT = 0x2F800000  # 2^-32: 2^-32 e^104 = 2^118 does not overflow


def tanh(o: Operations[V], x: V) -> V:
    """Hyperbolic tangent: odd, +-1 from |x| = 9.02 on and at infinities, keeps the sign of zero, NaN to NaN.

    With y = -2|x|, tanh |x| = (1 - e^y) / (1 + e^y). A single f32 for ln 2 is precise enough, because |n| <=
    27, and because an error of r is multiplied by e^y, which is small where |n| is large. At most 2 ulp.
    """
    y = o.maximum(o.mul(o.abs(x), o.f32(MINUS_TWO)), o.f32(TANH_FIRST))
    n = o.rint(o.mul(y, o.f32(LOG2_E)))
    r = o.sub(y, o.mul(n, o.f32(LN2)))
    p = o.add(r, o.mul(o.mul(r, r), polynomial(o, EXPM1_POLYNOMIAL, r)))
    power = o.power_of_two(o.f32_to_i32(n))
    scaled = o.mul(p, power)
    above = o.sub(o.sub(o.f32(ONE), power), scaled)
    below = o.add(o.add(o.f32(ONE), power), scaled)
    return copysign(o, o.div(above, below), x)


def sigmoid(o: Operations[V], x: V) -> V:
    """1 / (1 + e^-x): +0 up to -104 and at -inf, gradual underflow, 1 from 17.4 on, NaN to NaN.

    At most 2 ulp. Computed as 2^-32 / (2^-32 + 2^-32 e^-x), so that e^-x does not overflow before the result
    underflows.
    """
    bounded = o.minimum(o.maximum(x, o.f32(SIGMOID_FIRST)), o.f32(SIGMOID_LAST))
    n = o.rint(o.mul(bounded, o.f32(MINUS_LOG2_E)))
    r = o.sub(o.sub(o.mul(n, o.f32(MINUS_LN2_HIGH)), bounded), o.mul(n, o.f32(LN2_LOW)))
    p = o.add(r, o.mul(o.mul(r, r), polynomial(o, EXP_POLYNOMIAL, r)))
    power = o.power_of_two(o.sub_i32(o.f32_to_i32(n), o.i32(32)))
    below = o.add(o.add(o.f32(SIGMOID_UNIT), o.mul(p, power)), power)
    return o.div(o.f32(SIGMOID_UNIT), below)
