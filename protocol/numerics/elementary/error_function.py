"""`erf` as a fixed list of section-2 operations: arithmetic.md section 6."""

from __future__ import annotations

from protocol.numerics.elementary.operations import ONE, ZERO, Operations, V, polynomial

ERF_LAST = 0x407B8000  # 3.9297: 1 - erf(3.92) < 2^-25, so from there on the nearest f32 is 1
ERF_CENTRE = 0x401E0000  # 2.46875
ERF_SMALL = (0x3E0375D4, 0xBEC0939F, 0x3DE71673, 0xBCDBFB8D, 0x3BA9F913, 0xBA51A8C5, 0x38A3B977)
"""erf(x) / x - 1 as a polynomial in x^2 on |x| <= 1, lowest power first; relative error of erf 2^-29.4."""
ERF_LARGE = (
    *(0x3F7FE081, 0x3B26BA06, 0xBBCDDB0E, 0x3C1B8259, 0xBC1D74FD, 0x3BD9AB32, 0xBB405E2F),
    *(0x3A0025C2, 0x39C12FD3, 0xB99BC5D7, 0x38610594, 0x37CD4E02, 0xB717E754),
)
"""erf(2.46875 + u) on 1 <= 2.46875 + u <= 3.93, lowest power first; error 2^-24.4."""


def erf(o: Operations[V], x: V) -> V:
    """Error function: odd, +-1 from |x| = 3.93 on and at infinities, zeros unchanged, NaN to NaN. At most 2 ulp."""
    a = o.minimum(o.abs(x), o.f32(ERF_LAST))
    large = o.minimum(polynomial(o, ERF_LARGE, o.sub(a, o.f32(ERF_CENTRE))), o.f32(ONE))
    signed = o.select(o.lt(x, o.f32(ZERO)), o.neg(large), large)
    small = o.add(x, o.mul(x, polynomial(o, ERF_SMALL, o.mul(x, x))))
    return o.select(o.lt(a, o.f32(ONE)), small, signed)
