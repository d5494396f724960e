"""`exp` and `log` as fixed lists of section-2 operations: arithmetic.md section 6.

The coefficients are those of minimax polynomials (Remez exchange in 40 digits), rounded to f32.
"""

from __future__ import annotations

from protocol.numerics.elementary.operations import (
    HALF,
    INFINITY,
    LN2_HIGH,
    LN2_LOW,
    LOG2_E,
    MINUS_INFINITY,
    NAN,
    ONE,
    TWO,
    ZERO,
    Operations,
    V,
    polynomial,
)

EXP_FIRST = 0xC2D00000  # -104: e^-104 = 2^-150.04 rounds to 0, as do all smaller results
EXP_LAST = 0x42B20000  # 89: e^89 = 2^128.4 overflows, as do all larger results
EXP_POLYNOMIAL = (0x3EFFFFFE, 0x3E2AAA45, 0x3D2AAC8B, 0x3C091FE3, 0x3AB50D39)
"""(e^r - 1 - r) / r^2 on |r| <= 1.01 ln(2)/2, lowest power first. The relative error of e^r is 2^-28.2."""

MIN_NORMAL = 0x00800000  # 2^-126
SQRT_HALF = 0x3F3504F3  # f32 nearest to sqrt(1/2): mantissas are at least this and below twice this
LOG_POLYNOMIAL = (0x3F2AAABD, 0x3ECCAF58, 0x3E98F1FF)
"""(log((1+s)/(1-s)) / s - 2) / s^2 as a polynomial in s^2 on |s| <= 0.1716, lowest first; error 2^-29.2."""


def exp(o: Operations[V], x: V) -> V:
    """e^x for f32: +0 at -inf, overflow to +inf, gradual underflow, NaN to NaN. At most 2 ulp.

    x = n ln 2 + r, |r| <= ln(2)/2; e^x = (1 + (r + r^2 P(r))) * 2^n.
    """
    bounded = o.minimum(o.maximum(x, o.f32(EXP_FIRST)), o.f32(EXP_LAST))
    n = o.rint(o.mul(bounded, o.f32(LOG2_E)))
    r = o.sub(o.sub(bounded, o.mul(n, o.f32(LN2_HIGH))), o.mul(n, o.f32(LN2_LOW)))
    tail = o.mul(o.mul(r, r), polynomial(o, EXP_POLYNOMIAL, r))
    return o.scale(o.add(o.f32(ONE), o.add(r, tail)), o.f32_to_i32(n))


def log(o: Operations[V], x: V) -> V:
    """Natural logarithm for f32: -inf at both zeros, NaN below zero, +inf at +inf, NaN to NaN. At most 2 ulp.

    x = 2^k m, sqrt(1/2) <= m < sqrt(2); log x = k ln 2 + log m. With f = m - 1 and s = f / (2 + f), log m = f
    - (f^2/2 - s (f^2/2 + s^2 P(s^2))), a form without cancellation. Subnormals are first multiplied by 2^24.
    """
    small = o.lt(x, o.f32(MIN_NORMAL))
    normal = o.select(small, o.scale(x, o.i32(24)), x)
    offset = o.sub_i32(o.bits_i32(normal), o.i32(SQRT_HALF))
    k = o.sub_i32(o.shr_i32(offset, o.i32(23)), o.select_i32(small, o.i32(24), o.i32(0)))
    m = o.from_bits_i32(o.add_i32(o.and_i32(offset, o.i32(0x7FFFFF)), o.i32(SQRT_HALF)))

    f = o.sub(m, o.f32(ONE))
    half_square = o.mul(o.f32(HALF), o.mul(f, f))
    s = o.div(f, o.add(o.f32(TWO), f))
    z = o.mul(s, s)
    kf = o.i32_to_f32(k)
    bracket = o.add(half_square, o.mul(z, polynomial(o, LOG_POLYNOMIAL, z)))
    low = o.add(o.mul(s, bracket), o.mul(kf, o.f32(LN2_LOW)))
    finite = o.add(o.mul(kf, o.f32(LN2_HIGH)), o.sub(f, o.sub(half_square, low)))

    above = o.select(o.eq(x, o.f32(INFINITY)), x, finite)
    other = o.select(o.eq(x, o.f32(ZERO)), o.f32(MINUS_INFINITY), o.f32(NAN))
    return o.select(o.lt(o.f32(ZERO), x), above, other)
