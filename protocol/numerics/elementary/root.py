"""`rsqrt` as a fixed list of section-2 operations: arithmetic.md section 6."""

from __future__ import annotations

from protocol.numerics.elementary.operations import ONE, Operations, V


def rsqrt(o: Operations[V], x: V) -> V:
    """1 / sqrt(x): infinite with the sign of a zero, NaN below zero, +0 at +inf, NaN to NaN.

    At most 2 ulp.
    """
    return o.div(o.f32(ONE), o.sqrt(x))
