"""`sin` and `cos` as fixed lists of section-2 operations: arithmetic.md section 6.

The argument x is reduced by k pi/2, the multiple of pi/2 nearest to x, where k is an integer. For this, pi/2
is cut into pieces. All but the last piece have at most 9 bits. |x| <= 2^15 means |k| <= 20861 < 2^15, so the
products of these short pieces with k are exact. Unless k = 0, every f32 in this range differs from its k pi/2
by at least 2^-27.8 (the closest is at k = 161). For a difference with a relative error of about 2^-24, the
error of k pi/2 must stay below 2^-52. Beyond |x| = 2^15 the result is NaN.
"""

from __future__ import annotations

from protocol.numerics.elementary.operations import HALF, NAN, ONE, Operations, V, polynomial

LAST = 0x47000000  # 2^15
TWO_OVER_PI = 0x3F22F983  # 0.636619747
PI_HALF = (0x3FC90000, 0x39FD8000, 0x34A88000, 0x2E858000, 0x298C234C)
"""pi/2 as four pieces of at most 9 bits and a last piece of 24 bits. The last piece is about 2^-43.9. The sum
of all five is within 2^-68.7 of pi/2.
"""
SIN_POLYNOMIAL = (0x3E2AAAA2, 0xBC088363, 0x394C8E2E)
"""(1 - sin(r) / r) / r^2 as a polynomial in r^2 on |r| <= pi/4, lowest power first.

Relative error of sin: 2^-27.8.
"""
COS_POLYNOMIAL = (0x3D2AAAA5, 0xBAB6060A, 0x37CCEF34)
"""(cos(r) - 1 + r^2 / 2) / r^4 as a polynomial in r^2 on |r| <= pi/4, lowest power first.

Relative error of cos: 2^-32.7.
"""


def sin(o: Operations[V], x: V) -> V:
    """Sine. The error is at most 2 ulp for |x| <= 2^15. The result is NaN beyond, at infinities and for NaN.
    Odd, keeps the sign of zero.
    """
    return _by_quadrant(o, x, 0)


def cos(o: Operations[V], x: V) -> V:
    """Cosine. The error is at most 2 ulp for |x| <= 2^15. The result is NaN beyond, at infinities and for
    NaN. Even.
    """
    return _by_quadrant(o, x, 1)


def _by_quadrant(o: Operations[V], x: V, ahead: int) -> V:
    """sin(x + ahead pi/2): +-sin(r) or +-cos(r), depending on the low two bits of k + ahead.

    The products of k with the pieces C0 … C4 of `PI_HALF` are subtracted from x in order. x - k C0 - k C1 is
    exact. Subtracting k C2 is exact too if its result is below 2^-6 in magnitude. Otherwise the rounding
    error of this step is subtracted together with k C3. So r is rounded once. k C4 is subtracted with the
    last term of the sine.
    """
    quadrant = o.f32_to_i32(o.mul(x, o.f32(TWO_OVER_PI)))
    k = o.i32_to_f32(quadrant)
    exact = o.sub(o.sub(x, o.mul(k, o.f32(PI_HALF[0]))), o.mul(k, o.f32(PI_HALF[1])))
    third = o.mul(k, o.f32(PI_HALF[2]))
    rounded = o.sub(exact, third)
    lost = o.sub(o.sub(exact, rounded), third)
    r = o.sub(rounded, o.sub(o.mul(k, o.f32(PI_HALF[3])), lost))
    low = o.mul(k, o.f32(PI_HALF[4]))

    z = o.mul(r, r)
    sine = o.sub(r, o.add(o.mul(o.mul(r, z), polynomial(o, SIN_POLYNOMIAL, z)), low))
    tail = o.mul(o.mul(z, z), polynomial(o, COS_POLYNOMIAL, z))
    cosine = o.add(o.sub(o.f32(ONE), o.mul(o.f32(HALF), z)), tail)

    turned = o.add_i32(quadrant, o.i32(ahead)) if ahead else quadrant
    even = o.eq_i32(o.and_i32(turned, o.i32(1)), o.i32(0))
    positive = o.eq_i32(o.and_i32(turned, o.i32(2)), o.i32(0))
    value = o.select(even, sine, cosine)
    signed = o.select(positive, value, o.neg(value))
    return o.select(o.lt(o.f32(LAST), o.abs(x)), o.f32(NAN), signed)
