"""Elementary functions for which no rule applies, composed of functions that have rules. Unless noted, errors
are a few units in the last place.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from protocol.capture.expansion.table import aten, expands

LARGEST_POWER = 16
"""The largest exponent for which the rule computes a power by repeated multiplication."""
ARCTANGENT = (
    0.9999999818725116,
    -0.33332796935195796,
    0.19974404785888172,
    -0.13851478426925348,
    0.07984962911564944,
)
"""Coefficients of a polynomial in z^2 for atan(z) / z with |z| <= tan(pi / 8), fitted by least squares at the
zeros of the Chebyshev polynomial of degree 400. The error is at most 2e-8.
"""


@expands(aten.log2.default)
def log2(x: Tensor) -> Tensor:
    """log x / log 2."""
    return x.log() * (1 / math.log(2))


@expands(aten.log10.default)
def log10(x: Tensor) -> Tensor:
    """log x / log 10."""
    return x.log() * (1 / math.log(10))


@expands(aten.pow.Tensor_Tensor)
def power(x: Tensor, y: Tensor) -> Tensor:
    """2^(y log2 |x|), and 1 if y = 0 or x = 1. For negative x, the result is negative if y is odd, and NaN if
    y is not an integer.

    The relative error grows with |y log2 x|, to 1e-5 where the result is near the largest f32.
    """
    if not x.is_floating_point() and not y.is_floating_point():
        raise NotImplementedError("integers have no powers that fit")
    x, y = x.float(), y.float()
    size = (y * log2(torch.where(x == 0, 1.0, x.abs()))).exp2()
    at_zero = torch.where(y > 0, 0.0, math.inf)
    size = torch.where(x == 0, at_zero, size)
    odd = (y * 0.5).floor() * 2 != y
    signed = torch.where(y.floor() != y, math.nan, torch.where(odd, -size, size))
    return torch.where((y == 0) | (x == 1), 1.0, torch.where(x < 0, signed, size))


def _is_no_product(node: Node) -> bool:
    """Whether a power is left to `power` instead of the rule's repeated multiplication: its exponent is not a
    multiple of one half, or has a magnitude above `LARGEST_POWER`.
    """
    exponent: Any = node.args[1]
    size = abs(float(exponent))
    return not (2 * size).is_integer() or size > LARGEST_POWER


@expands(aten.pow.Tensor_Scalar, where=_is_no_product)
def power_by_number(x: Tensor, y: float) -> Tensor:
    """`power` with a number as the exponent."""
    return power(x, torch.full((), y, device=x.device))


@expands(aten.pow.Scalar)
def power_of_number(x: float, y: Tensor) -> Tensor:
    """`power` with a number as the base."""
    return power(torch.full((), x, device=y.device), y)


@expands(aten.tan.default)
def tan(x: Tensor) -> Tensor:
    """sin x / cos x."""
    return x.sin() / x.cos()


@expands(aten.sinh.default)
def sinh(x: Tensor) -> Tensor:
    """(u + u / (u + 1)) / 2 for u = e^|x| - 1, with the sign of x: no loss of precision near 0."""
    far = (x.abs() - math.log(2)).exp()  # e^|x| / 2, without computing e^|x|, which may overflow
    u = x.abs().clamp(max=80.0).expm1()
    return x.sign() * torch.where(x.abs() > 80.0, far, (u + u / (u + 1)) * 0.5)


@expands(aten.cosh.default)
def cosh(x: Tensor) -> Tensor:
    """(e^|x| + e^-|x|) / 2."""
    half = (x.abs() - math.log(2)).exp()
    return torch.where(x.abs() > 80.0, half, (x.exp() + (-x).exp()) * 0.5)


@expands(aten.asinh.default)
def asinh(x: Tensor) -> Tensor:
    """log(1 + y + y^2 / (1 + sqrt(1 + y^2))) for y = |x|, with the sign of x; log(2 y) for large y."""
    y = x.abs()
    near = y.clamp(max=1e9)
    curve = (near + near * near / (1 + (near * near + 1).sqrt())).log1p()
    return x.sign() * torch.where(y > 1e9, y.log() + math.log(2), curve)


@expands(aten.acosh.default)
def acosh(x: Tensor) -> Tensor:
    """log(1 + t + sqrt(2 t + t^2)) for t = x - 1; log(2 x) for large x; NaN below 1."""
    t = x.clamp(max=1e9) - 1
    near = torch.where(x < 1, math.nan, (t + (2 * t + t * t).sqrt()).log1p())
    return torch.where(x > 1e9, x.log() + math.log(2), near)


@expands(aten.atanh.default)
def atanh(x: Tensor) -> Tensor:
    """log(1 + 2 y / (1 - y)) / 2 for y = |x|, with the sign of x."""
    y = x.abs()
    return x.sign() * (2 * y / (1 - y)).log1p() * 0.5


@expands(aten.atan.default)
def atan(x: Tensor) -> Tensor:
    """A polynomial for |x| <= tan(pi / 8); larger arguments are reduced by -1 / x or (x - 1) / (x + 1)."""
    y = x.abs()
    far, middle = y > 1 + math.sqrt(2), y > math.sqrt(2) - 1
    z = torch.where(far, -1 / y, torch.where(middle, (y - 1) / (y + 1), y))
    start = torch.where(far, math.pi / 2, torch.where(middle, math.pi / 4, 0.0))
    square = z * z
    series = torch.zeros_like(z)
    for factor in reversed(ARCTANGENT):
        series = series * square + factor
    return x.sign() * (start + z * series)


@expands(aten.atan2.default)
def atan2(y: Tensor, x: Tensor) -> Tensor:
    """The angle of (x, y): atan(y / x) moved to its quadrant; 0 or pi where y = 0."""
    x, y = torch.broadcast_tensors(x, y)
    far = (x.abs() == math.inf) & (y.abs() == math.inf)
    x, y = torch.where(far, x.sign(), x), torch.where(far, y.sign(), y)
    angle = (y / torch.where(x == 0, 1.0, x)).atan()
    turned = angle + torch.where(y < 0, -math.pi, math.pi)
    upright = torch.where(y == 0, 0.0, torch.where(y < 0, -math.pi / 2, math.pi / 2))
    found = torch.where(x > 0, angle, torch.where(x < 0, turned, upright))
    return torch.where(torch.isnan(x) | torch.isnan(y), math.nan, found)


@expands(aten.asin.default)
def asin(x: Tensor) -> Tensor:
    """atan2(x, sqrt((1 - x) (1 + x)))."""
    return torch.atan2(x, ((1 - x) * (1 + x)).sqrt())


@expands(aten.acos.default)
def acos(x: Tensor) -> Tensor:
    """atan2(sqrt((1 - x) (1 + x)), x)."""
    return torch.atan2(((1 - x) * (1 + x)).sqrt(), x)


@expands(aten.erfc.default)
def erfc(x: Tensor) -> Tensor:
    """1 - erf x. For large x, where erf x is near 1, the relative error is large."""
    return 1 - x.erf()


@expands(aten.sinc.default)
def sinc(x: Tensor) -> Tensor:
    """sin(pi x) / (pi x); 1 at 0."""
    y = x * math.pi
    return torch.where(x == 0, 1.0, y.sin() / torch.where(x == 0, 1.0, y))


@expands(aten.logit.default)
def logit(x: Tensor, eps: float | None = None) -> Tensor:
    """log(x / (1 - x)), with x clamped to [eps, 1 - eps] if `eps` is given."""
    x = x if eps is None else x.clamp(eps, 1 - eps)
    return (x / (1 - x)).log()


@expands(aten.logaddexp.default)
def logaddexp(x: Tensor, y: Tensor) -> Tensor:
    """max(x, y) + log(1 + e^-|x - y|)."""
    high = torch.maximum(x, y)
    return torch.where(x == y, high + math.log(2), high + (-(x - y).abs()).exp().log1p())
