"""`rsqrt` as a fixed list of operations. Section 2 of arithmetic.md defines the operations, section 6 the list."""

from __future__ import annotations

from protocol.numerics.elementary.operations import ONE, Operations, V


def rsqrt(o: Operations[V], x: V) -> V:
    """1 / sqrt(x), with an error of at most 2 ulp. A zero gives an infinity of the same sign, +inf gives +0,
    and NaN and numbers below zero give NaN.
    """
    return o.div(o.f32(ONE), o.sqrt(x))
