"""Elementwise operations."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from protocol.capture.expansion.table import aten, expands, expands_as_torch

expands_as_torch(
    *(aten._prelu_kernel.default, aten._prelu_kernel_backward.default),
    aten.logit_backward.default,
    *(aten.soft_margin_loss.default, aten.soft_margin_loss_backward.default),
)


@expands(aten.trunc.default)
def trunc(x: Tensor) -> Tensor:
    """x rounded towards zero."""
    if not x.is_floating_point():
        return x.clone()
    return torch.where(x < 0, x.ceil(), x.floor())


def _is_of_integers(node: Node) -> bool:
    x: Any = node.args[0]
    return not x.meta["val"].is_floating_point()


@expands(aten.sign.default, aten.sgn.default, where=_is_of_integers)
def sign(x: Tensor) -> Tensor:
    """The sign of an integer: -1, 0 or 1."""
    return (x > 0).to(x.dtype) - (x < 0).to(x.dtype)


@expands(aten.frac.default)
def frac(x: Tensor) -> Tensor:
    """x - trunc x."""
    return x - trunc(x)


@expands(aten.fmod.Tensor, aten.fmod.Scalar)
def fmod(x: Tensor, y: Tensor | float) -> Tensor:
    """The remainder of |x| / |y|, with the sign of x."""
    of = x.abs() % (y.abs() if isinstance(y, Tensor) else abs(y))
    return torch.where(x < 0, -of, of)


@expands(aten.nan_to_num.default)
def nan_to_num(
    x: Tensor, nan: float | None = None, high: float | None = None, low: float | None = None
) -> Tensor:
    """x with NaN and the infinities replaced. By default, NaN becomes 0 and the infinities become the largest
    finite numbers.
    """
    if not x.is_floating_point():
        return x.clone()
    most = torch.finfo(x.dtype).max
    finite = torch.where(torch.isnan(x), 0.0 if nan is None else nan, x)
    finite = torch.where(finite == math.inf, most if high is None else high, finite)
    return torch.where(finite == -math.inf, -most if low is None else low, finite)


@expands(aten.hypot.default)
def hypot(x: Tensor, y: Tensor) -> Tensor:
    """sqrt(x^2 + y^2), computed as a * sqrt((b / a)^2 + 1), where a is the larger and b the smaller of |x|
    and |y|. So no square overflows. If a is 0 or infinite, the result is a.
    """
    large, small = torch.maximum(x.abs(), y.abs()), torch.minimum(x.abs(), y.abs())
    ratio = small / torch.where(large == 0, 1.0, large)
    return torch.where(large == math.inf, large, large * (ratio * ratio + 1).sqrt())


@expands(aten.copysign.Tensor, aten.copysign.Scalar)
def copysign(x: Tensor, y: Tensor | float) -> Tensor:
    """|x| with the sign of y; if y is a tensor, its -0 counts as +0."""
    if not isinstance(y, Tensor):
        return -x.abs() if math.copysign(1.0, y) < 0 else x.abs()
    return torch.where(y < 0, -x.abs(), x.abs())


@expands(aten.heaviside.default)
def heaviside(x: Tensor, at_zero: Tensor) -> Tensor:
    """0 for negative x, 1 for positive x, `at_zero` for zero."""
    return torch.where(x == 0, at_zero, (x > 0).to(x.dtype))


@expands(aten.softshrink.default)
def softshrink(x: Tensor, limit: float = 0.5) -> Tensor:
    """x moved towards zero by `limit`; 0 where |x| is at most `limit`."""
    return torch.where(x > limit, x - limit, torch.where(x < -limit, x + limit, x * 0))


@expands(aten.hardshrink.default)
def hardshrink(x: Tensor, limit: float = 0.5) -> Tensor:
    """x where |x| exceeds `limit`, else 0."""
    return torch.where(x.abs() <= limit, 0.0, x)


@expands(aten.softshrink_backward.default, aten.hardshrink_backward.default)
def shrink_gradient(g: Tensor, x: Tensor, limit: float) -> Tensor:
    """The gradient of both shrink functions: g where |x| exceeds `limit`, else 0."""
    return torch.where(x.abs() <= limit, 0.0, g)
