"""Products of matrices and vectors, triangular systems, and distances."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from protocol.capture.expansion.table import OF_LIBRARIES, aten, expands, gradient
from protocol.capture.tracing.grouped import grouped_product

expands(aten._grouped_mm.default)(grouped_product)
OF_LIBRARIES["transformers.grouped_mm_fallback.default"] = grouped_product


@expands(aten.vdot.default)
def vdot(x: Tensor, y: Tensor) -> Tensor:
    """The dot product of two vectors."""
    return x.dot(y)


@expands(aten.addr.default)
def addr(x: Tensor, left: Tensor, right: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta x + alpha left right^T. If beta is 0, x is ignored. The product is computed elementwise, so the
    operands are not rounded.
    """
    product = left.unsqueeze(-1) * right
    product = product if alpha == 1 else product * alpha
    if beta == 0:  # x may hold NaN
        return product
    return (x if beta == 1 else x * beta) + product


@expands(aten.linalg_cross.default)
def cross(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The cross products of the three-element vectors along an axis."""
    x, y = torch.broadcast_tensors(x, y)
    return x.roll(-1, dim) * y.roll(-2, dim) - x.roll(-2, dim) * y.roll(-1, dim)


@expands(aten.linalg_solve_triangular.default)
def solve_triangular(
    x: Tensor, y: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """x^-1 y, or y x^-1 if not `left`. Each row is computed from the rows already found, and every step is
    rounded.
    """
    if not left:
        return solve_triangular(x.mT, y.mT, upper=not upper, unitriangular=unitriangular).mT
    if upper:
        turned = x.flip(-2, -1), y.flip(-2)
        return solve_triangular(*turned, upper=False, unitriangular=unitriangular).flip(-2)
    y = y.expand(*torch.broadcast_shapes(x.shape[:-2], y.shape[:-2]), *y.shape[-2:])
    found = y[..., :0, :]
    for k in range(y.shape[-2]):
        row = y[..., k : k + 1, :]
        if k:
            row = row - (x[..., k, :k].unsqueeze(-1) * found).sum(-2, keepdim=True)
        row = row if unitriangular else row / x[..., k : k + 1, k : k + 1]
        found = torch.cat([found, row], -2) if k else row
    return found


@expands(aten._cdist_forward.default)
def cdist(x: Tensor, y: Tensor, order: float, _: int | None) -> Tensor:
    """The distance of each row of x from each row of y, in the norm of the given order."""
    apart = x.unsqueeze(-2) - y.unsqueeze(-3)
    distances: Tensor = torch.linalg.vector_norm(apart, order, -1)
    return distances


@expands(aten._euclidean_dist.default)
def euclidean(x: Tensor, y: Tensor) -> Tensor:
    """The distance of each row of x from each row of y, computed from the difference of the two rows. torch
    itself computes the distances from one matrix product, which makes small distances inaccurate.
    """
    return cdist(x, y, 2.0, None)


@expands(aten._cdist_backward.default)
def cdist_gradient(g: Tensor, x: Tensor, y: Tensor, order: float, found: Tensor) -> Tensor:
    """The gradient with respect to x; 0 for order 0. Coordinates in which two rows are equal contribute nothing."""
    apart = x.unsqueeze(-2) - y.unsqueeze(-3)
    g, found = g.unsqueeze(-1), found.unsqueeze(-1)
    if order == 0:
        slope = torch.zeros_like(apart)
    elif order == 1:
        slope = apart.sign()
    elif order == 2:
        slope = apart / torch.where(found == 0, 1.0, found)
    elif order != math.inf:
        slope = apart.sign() * (apart.abs() / torch.where(found == 0, 1.0, found)) ** (order - 1)
        if order < 1:  # torch: no distance changes along an axis on which the rows are equal
            slope = torch.where(apart == 0, 0.0, slope)
    else:
        slope = apart.sign() * (apart.abs() == found)
    return (g * slope).sum(-2)


@expands(aten._pdist_forward.default)
def pdist(x: Tensor, order: float = 2.0) -> Tensor:
    """The distance of each row from each row after it."""
    rows, columns = torch.triu_indices(x.shape[0], x.shape[0], 1, device=x.device).unbind(0)
    distances: Tensor = torch.linalg.vector_norm(x[rows] - x[columns], order, -1)
    return distances


@expands(aten._pdist_backward.default)
def pdist_gradient(g: Tensor, x: Tensor, order: float, _: Tensor) -> Tensor:
    """The gradient with respect to the rows."""
    return gradient(lambda leaf: pdist(leaf, order), x, g)


def grouped_gradients(x: Tensor, y: Tensor, offs: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of both operands of a grouped product, in which every group of rows is multiplied by its
    own matrix.
    """
    return grouped_product(g, y.mT, offs), grouped_product(x.mT, g, offs)


OF_LIBRARIES["transformers.grouped_mm_fallback_backward.default"] = grouped_gradients
