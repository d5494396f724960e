"""Views of a tensor's memory by strides, where its elements are in order, as `fill_diagonal_` takes them; slices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from protocol.capture.expansion.table import aten, expands


@expands(aten.as_strided.default)
def as_strided(x: Tensor, size: Sequence[int], stride: Sequence[int], offset: int | None = None) -> Tensor:
    """The elements at some places in memory."""
    _require_order(x)
    places = torch.full([1] * len(size), offset or 0, dtype=torch.int64, device=x.device)
    for axis, (count, step) in enumerate(zip(size, stride)):
        shape = [count if k == axis else 1 for k in range(len(size))]
        places = places + (torch.arange(count, device=x.device) * step).view(shape)
    return x.reshape(-1)[places]


@expands(aten.as_strided_scatter.default)
def as_strided_scatter(
    x: Tensor, given: Tensor, size: Sequence[int], stride: Sequence[int], offset: int | None = None
) -> Tensor:
    """x with others in the place of some elements, no two at one place."""
    _require_order(x)
    rest = torch.arange(x.numel(), device=x.device) - (offset or 0)
    chosen = torch.zeros_like(rest)
    for axis in _from_the_widest(size, stride):
        place = (rest // stride[axis]).clamp(0, size[axis] - 1)
        rest = rest - place * stride[axis]
        chosen = chosen + place * given[(0,) * (axis + 1)].numel()
    others = given.reshape(-1)[chosen.clamp(0, given.numel() - 1)]
    return torch.where(rest == 0, others, x.reshape(-1)).view(x.shape)


def _has_gaps(node: Node) -> bool:
    step: Any = node.args[5] if len(node.args) > 5 else node.kwargs.get("step", 1)
    return bool(step != 1)


@expands(aten.slice_scatter.default, where=_has_gaps)
def slice_scatter(
    x: Tensor, given: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """x with others in the place of every few elements along an axis."""
    size, count = x.shape[dim], given.shape[dim]
    first = range(size)[start:end:step].start
    place = torch.arange(size, device=x.device) - first
    chosen = place // step
    written = (place % step == 0) & (chosen >= 0) & (chosen < count)
    shape = [size if k == dim % x.dim() else 1 for k in range(x.dim())]
    return torch.where(written.view(shape), given.index_select(dim, chosen.clamp(0, count - 1)), x)


def _from_the_widest(size: Sequence[int], stride: Sequence[int]) -> list[int]:
    """The axes of more than one element, by their strides: each of them greater than all those after it reach."""
    axes = sorted((axis for axis, count in enumerate(size) if count > 1), key=stride.__getitem__)
    reach = 0
    for axis in axes:
        if stride[axis] <= reach:
            raise NotImplementedError("two elements at one place")
        reach += stride[axis] * (size[axis] - 1)
    return axes[::-1]


def _require_order(x: Tensor) -> None:
    if not x.is_contiguous() or x.storage_offset():
        raise NotImplementedError("memory in another order")
