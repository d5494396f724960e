"""`sin` and `cos` as fixed lists of section-2 operations: arithmetic.md section 6.

The argument is reduced by the nearest multiple k pi/2, pi/2 being cut into pieces of at most 9 bits: |x| <= 2^15 means
|k| <= 20861 < 2^15, so their products with k are exact. Beyond 2^15 the result is NaN.
"""

from __future__ import annotations

from protocol.numerics.elementary.operations import HALF, NAN, ONE, ZERO, Operations, V, polynomial

LAST = 0x47000000  # 2^15
TWO_OVER_PI = 0x3F22F983  # 0.636619747
PI_HALF = (0x3FC90000, 0x39FD8000, 0x34A88000, 0x2E858000, 0x298C234C)
"""pi/2 in four pieces of 9 bits and one of 24; their sum is off by 2^-68."""
SIN_POLYNOMIAL = (0xBE2AAAA2, 0x3C088363, 0xB94C8E2E)
"""(sin(r) / r - 1) / r^2 as a polynomial in r^2 on |r| <= pi/4, lowest power first; relative error of sin 2^-27.8."""
COS_POLYNOMIAL = (0x3D2AAAA5, 0xBAB6060A, 0x37CCEF34)
"""(cos(r) - 1 + r^2 / 2) / r^4 likewise; relative error of cos 2^-32.7."""


def sin(o: Operations[V], x: V) -> V:
    """Sine for |x| <= 2^15, at most 2 ulp; NaN beyond, at infinities and for NaN. Keeps the sign of zero."""
    return o.select(o.eq(x, o.f32(ZERO)), x, _by_quadrant(o, x, 0))


def cos(o: Operations[V], x: V) -> V:
    """Cosine for |x| <= 2^15, at most 2 ulp; NaN beyond, at infinities and for NaN."""
    return _by_quadrant(o, x, 1)


def _by_quadrant(o: Operations[V], x: V, ahead: int) -> V:
    """sin(x + ahead pi/2): +-sin(r) or +-cos(r) by the low two bits of k + ahead."""
    k = o.rint(o.mul(x, o.f32(TWO_OVER_PI)))
    r = x
    for piece in PI_HALF:
        r = o.sub(r, o.mul(k, o.f32(piece)))
    z = o.mul(r, r)
    sine = o.add(r, o.mul(o.mul(r, z), polynomial(o, SIN_POLYNOMIAL, z)))
    tail = o.mul(o.mul(z, z), polynomial(o, COS_POLYNOMIAL, z))
    cosine = o.add(o.sub(o.f32(ONE), o.mul(o.f32(HALF), z)), tail)

    quadrant = o.f32_to_i32(k)
    quadrant = o.add_i32(quadrant, o.i32(ahead)) if ahead else quadrant
    even = o.eq_i32(o.and_i32(quadrant, o.i32(1)), o.i32(0))
    upper = o.eq_i32(o.and_i32(quadrant, o.i32(2)), o.i32(0))
    value = o.select(even, sine, cosine)
    signed = o.select(upper, value, o.neg(value))
    return o.select(o.lt(o.f32(LAST), o.abs(x)), o.f32(NAN), signed)
