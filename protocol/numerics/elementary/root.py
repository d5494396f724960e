"""`rsqrt` as a fixed list of section-2 operations: arithmetic.md section 6."""

from __future__ import annotations

from protocol.numerics.elementary.operations import ONE, Operations, V


def rsqrt(o: Operations[V], x: V) -> V:
    """1 / sqrt(x), at most 2 ulp: an infinity of x's sign for a zero, NaN below zero and for NaN, +0 at +inf."""
    return o.div(o.f32(ONE), o.sqrt(x))
