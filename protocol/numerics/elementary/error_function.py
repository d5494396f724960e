"""`erf` as a fixed list of section-2 operations: arithmetic.md section 6."""

from __future__ import annotations

from protocol.numerics.elementary.operations import ONE, ZERO, Operations, V, polynomial

ERF_LAST = 0x407B0000  # 3.921875: 1 - erf(3.92) < 2^-25, so from there on the nearest f32 is 1
ERF_CENTRE = 0x401F0000  # 2.484375
ERF_SMALL = (0x3E0375D4, 0xBEC0939F, 0x3DE71673, 0xBCDBFB8D, 0x3BA9F913, 0xBA51A8C5, 0x38A3B977)
"""erf(x) / x - 1 as a polynomial in x^2 on |x| <= 1, lowest power first.

The relative error of erf is 2^-29.4.
"""
ERF_LARGE = (
    *(0x3F7FE303, 0x3B1A4EA2, 0xBBBFBA4B, 0x3C11EDDE, 0xBC1522CB, 0x3BD0BE03, 0xBB3CA553),
    *(0x3A0B7B9B, 0x39AB1FB2, 0xB99724DD, 0x3873C9B8, 0x37BEDC48, 0xB7191536),
)
"""erf(2.484375 + u) as a polynomial in u on 1 <= 2.484375 + u <= 3.922, lowest power first. The error is
2^-25.0, and the value at 3.922 is exactly 1.
"""


def erf(o: Operations[V], x: V) -> V:
    """The error function, with an error of at most 2 ulp. It is odd. It is exactly +-1 from |x| = 3.922 on
    and at infinities, returns zeros unchanged, and returns NaN for NaN.
    """
    a = o.minimum(o.abs(x), o.f32(ERF_LAST))
    large = polynomial(o, ERF_LARGE, o.sub(a, o.f32(ERF_CENTRE)))
    signed = o.select(o.lt(x, o.f32(ZERO)), o.neg(large), large)
    small = o.add(x, o.mul(x, polynomial(o, ERF_SMALL, o.mul(x, x))))
    return o.select(o.lt(a, o.f32(ONE)), small, signed)
