"""Tensors that view another tensor's memory by strides, as in pooling and `fill_diagonal_`; and operations
that write to slices with steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from protocol.capture.expansion.table import aten, expands

Sizes = Sequence[int]


@expands(aten.as_strided.default)
def as_strided(x: Tensor, size: Sizes, stride: Sizes, offset: int | None = None) -> Tensor:
    """The elements at the places in memory that the strides give. The elements of x must be contiguous in memory."""
    elements, start = _in_memory(x), _start(x, offset)
    if start == 0 and math.prod(size) == x.numel() and _order(size, stride) is not None:
        return _placed(elements, size, stride)
    _require_inside(x, size, stride, start)
    places = torch.full([1] * len(size), start, dtype=torch.int64, device=x.device)
    for axis, (count, step) in enumerate(zip(size, stride)):
        shape = [count if k == axis else 1 for k in range(len(size))]
        places = places + (torch.arange(count, device=x.device) * step).view(shape)
    return elements[places]


@expands(aten.as_strided_scatter.default)
def as_strided_scatter(
    x: Tensor, given: Tensor, size: Sizes, stride: Sizes, offset: int | None = None
) -> Tensor:
    """x after `given` has replaced the elements of a strided view of x. No two elements of the view may be at
    the same place in memory.
    """
    elements, start = _in_memory(x), _start(x, offset)
    order = _order(size, stride)
    if start == 0 and given.numel() == x.numel() and order is not None:
        return _placed(given.permute(order).reshape(-1), x.shape, x.stride())
    _require_inside(x, size, stride, start)
    rest = torch.arange(x.numel(), device=x.device) - start
    chosen = torch.zeros_like(rest)
    for axis in _from_the_widest(size, stride):
        place = (rest // stride[axis]).clamp(0, size[axis] - 1)
        rest = rest - place * stride[axis]
        chosen = chosen + place * math.prod(size[axis + 1 :])
    others = given.reshape(-1)[chosen.clamp(0, given.numel() - 1)]
    return _placed(torch.where(rest == 0, others, elements), x.shape, x.stride())


def _in_memory(x: Tensor) -> Tensor:
    """All elements in the order of memory. Raises `NotImplementedError` unless they are contiguous in memory."""
    order = _order(x.shape, x.stride())
    if order is None:
        raise NotImplementedError("memory with gaps")
    return x.permute(order).reshape(-1)


def _placed(elements: Tensor, size: Sizes, stride: Sizes) -> Tensor:
    """A tensor of this size and stride, without gaps in memory, from its elements in memory order."""
    order = _order(size, stride)
    assert order is not None, "it was asked before"
    return elements.view([size[k] for k in order]).permute([order.index(k) for k in range(len(size))])


def _order(size: Sizes, stride: Sizes) -> list[int] | None:
    """The axes of a layout, from the largest stride to the smallest; axes of at most one element come last.
    None if the layout has gaps in memory, or if two elements share a place.
    """
    order = sorted(range(len(size)), key=lambda k: (size[k] > 1, stride[k]), reverse=True)
    expected = 1
    for k in reversed(order):
        if size[k] > 1 and stride[k] != expected:
            return None
        expected *= size[k]
    return order


def _start(x: Tensor, offset: int | None) -> int:
    """The distance of a view's first element from the tensor's first element in memory."""
    return 0 if offset is None else int(offset - x.storage_offset())


def _require_inside(x: Tensor, size: Sizes, stride: Sizes, start: int) -> None:
    """Raise `NotImplementedError` if a view reaches memory outside x. There may be such memory, because x may
    be a slice of a larger tensor.
    """
    last = start + sum((count - 1) * step for count, step in zip(size, stride))
    if start < 0 or last >= x.numel():
        raise NotImplementedError("memory beside the tensor")


def _has_gaps(node: Node) -> bool:
    step: Any = node.args[5] if len(node.args) > 5 else node.kwargs.get("step", 1)
    return bool(step != 1)


@expands(aten.slice_scatter.default, where=_has_gaps)
def slice_scatter(
    x: Tensor, given: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """x after `given` has replaced the elements that the slice `start:end:step` selects along the axis `dim`."""
    size, count = x.shape[dim], given.shape[dim]
    first = range(size)[start:end:step].start
    place = torch.arange(size, device=x.device) - first
    chosen = place // step
    written = (place % step == 0) & (chosen >= 0) & (chosen < count)
    shape = [size if k == dim % x.dim() else 1 for k in range(x.dim())]
    return torch.where(written.view(shape), given.index_select(dim, chosen.clamp(0, count - 1)), x)


def _from_the_widest(size: Sequence[int], stride: Sequence[int]) -> list[int]:
    """The axes that have more than one element, from the largest stride to the smallest. Raises
    `NotImplementedError` if two elements may share a place.
    """
    axes = sorted((axis for axis, count in enumerate(size) if count > 1), key=stride.__getitem__)
    reach = 0
    for axis in axes:
        if stride[axis] <= reach:
            raise NotImplementedError("two elements at one place")
        reach += stride[axis] * (size[axis] - 1)
    return axes[::-1]
