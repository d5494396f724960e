"""Products, counts, norms and running results along axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch._decomp import decomposition_table
from torch.fx import Node

from protocol.capture.expansion.table import EXPANSIONS, aten, expands, expands_as_torch, gradients

expands_as_torch(
    *(aten.norm.Scalar, aten.norm.ScalarOpt_dim, aten.dist.default),
    aten._weight_norm_interface.default,
    *(aten.std_mean.correction, aten.var.dim, aten.aminmax.default),
)


@expands(aten.renorm.default)
def renorm(x: Tensor, order: float, axis: int, limit: float) -> Tensor:
    """x, in which each slice along an axis is scaled down if its norm is above `limit`; its norm is then
    about `limit`. This is torch's own decomposition. The gradient is refused, because torch computes it in
    float64.
    """
    found: Tensor = decomposition_table[aten.renorm.default](x, order, axis, limit)
    return found


def _is_of_another_order(node: Node) -> bool:
    return len(node.args) > 1 and node.args[1] not in (1, 2, math.inf)


@expands(aten.linalg_vector_norm.default, where=_is_of_another_order)
def norm(
    x: Tensor,
    order: float = 2,
    axes: Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,  # noqa: ARG001
) -> Tensor:
    """sum(|x|^order)^(1 / order). Order 0 gives the number of nonzero elements, and order -inf the smallest |x|."""
    axes = list(range(x.dim())) if axes is None else list(axes)
    if order == 0:
        return (x != 0).to(x.dtype).sum(axes, keepdim)
    if order == -math.inf:
        return x.abs().amin(axes, keepdim)
    if order < 0:  # relative to the smallest, so that no power is infinite
        least = x.abs().amin(axes, True)
        limit = (least == 0) | (least == math.inf)
        powers = (x.abs() / torch.where(limit, 1.0, least)) ** order
        found = torch.where(limit, least, least * powers.sum(axes, True) ** (1 / order))
        return found if keepdim else found.squeeze(axes)
    return (x.abs() ** order).sum(axes, keepdim) ** (1 / order)


@expands(aten._weight_norm_interface_backward.default)
def weight_norm_gradient(g: Tensor, v: Tensor, size: Tensor, _: Tensor, axis: int) -> tuple[Tensor, ...]:
    """The gradients with respect to the direction and the magnitude of a weight."""
    normed = EXPANSIONS[aten._weight_norm_interface.default]
    return gradients(lambda *parts: normed(*parts, axis)[0], (v, size), g)


@expands(aten.prod.default)
def prod(x: Tensor, *, dtype: torch.dtype | None = None) -> Tensor:
    """The product of all elements."""
    return prod_along(x.reshape(-1), 0, dtype=dtype)


@expands(aten.prod.dim_int)
def prod_along(x: Tensor, axis: int, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    """Products along an axis, computed by repeatedly multiplying the first half by the second."""
    x = x.to(dtype or (x.dtype if x.is_floating_point() else torch.int64))
    while x.shape[axis] > 1:
        half = x.shape[axis] // 2
        pairs = x.narrow(axis, 0, half) * x.narrow(axis, half, half)
        x = torch.cat((pairs, x.narrow(axis, 2 * half, 1)), axis) if x.shape[axis] % 2 else pairs
    return x if keepdim else x.squeeze(axis)


def _rounds_to_integers(node: Node) -> bool:
    x: Any = node.args[0]
    return x.meta["val"].is_floating_point() and not node.meta["val"].is_floating_point()


@expands(aten.cumsum.default, where=_rounds_to_integers)
def cumsum(x: Tensor, axis: int, *, dtype: torch.dtype) -> Tensor:
    """Running sums of integers; floats are rounded towards zero first."""
    return x.to(dtype).cumsum(axis, dtype=dtype)


@expands(aten.cumprod.default)
def cumprod(x: Tensor, axis: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """Running products, computed in passes: the first pass multiplies each element by the element before it,
    the next pass by the element 2 places before it, then 4 places, and so on.
    """
    x = x.to(dtype or (x.dtype if x.is_floating_point() else torch.int64))
    step = 1
    while step < x.shape[axis]:
        kept = x.shape[axis] - step
        x = torch.cat((x.narrow(axis, 0, step), x.narrow(axis, step, kept) * x.narrow(axis, 0, kept)), axis)
        step *= 2
    return x


@expands(aten.cummax.default)
def cummax(x: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """The running maximum, and the last place where it occurs."""
    return _running(x, axis, largest=True)


@expands(aten.cummin.default)
def cummin(x: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """The running minimum, and the last place where it occurs."""
    return _running(x, axis, largest=False)


def _running(x: Tensor, axis: int, *, largest: bool) -> tuple[Tensor, Tensor]:
    shape = [x.shape[axis] if k == axis % x.dim() else 1 for k in range(x.dim())]
    place = torch.arange(x.shape[axis], device=x.device).view(shape).expand(x.shape)
    step = 1
    while step < x.shape[axis]:
        kept = x.shape[axis] - step
        new, old = x.narrow(axis, step, kept), x.narrow(axis, 0, kept)
        later = new >= old if largest else new <= old
        if x.is_floating_point():
            later = later | torch.isnan(new)  # NaN propagates
        at = torch.where(later, place.narrow(axis, step, kept), place.narrow(axis, 0, kept))
        x = torch.cat((x.narrow(axis, 0, step), torch.where(later, new, old)), axis)
        place = torch.cat((place.narrow(axis, 0, step), at), axis)
        step *= 2
    return x, place


@expands(aten.logcumsumexp.default)
def logcumsumexp(x: Tensor, axis: int) -> Tensor:
    """The logarithm of the running sum of exponentials."""
    step = 1
    while step < x.shape[axis]:
        kept = x.shape[axis] - step
        joined = torch.logaddexp(x.narrow(axis, step, kept), x.narrow(axis, 0, kept))
        x = torch.cat((x.narrow(axis, 0, step), joined), axis)
        step *= 2
    return x


@expands(aten.count_nonzero.default, aten.count_nonzero.dim_IntList)
def count_nonzero(x: Tensor, axes: int | Sequence[int] | None = None) -> Tensor:
    """The number of nonzero elements."""
    found = (x != 0).to(torch.int64)
    return found.sum() if axes is None else found.sum([axes] if isinstance(axes, int) else list(axes))


@expands(aten.trace.default)
def trace(x: Tensor) -> Tensor:
    """The sum of the diagonal."""
    return x.diagonal().sum()
