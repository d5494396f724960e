"""Operations that write to places determined by the data, that reduce the values which go to the same place,
or that count values in histograms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from protocol.capture.expansion.distinct import DISTINCT, are_distinct
from protocol.capture.expansion.table import aten, expands

MOST_VALUES = 1 << 24
"""Limit on the number of places that are numbered in f32. f32 holds every integer up to this limit exactly."""


@expands(aten.index_fill.int_Scalar, aten.index_fill.int_Tensor)
def index_fill(x: Tensor, axis: int, index: Tensor, value: Tensor | float) -> Tensor:
    """x with one value written to some slices along an axis."""
    index = index.reshape(-1)
    size = x.shape[axis]
    chosen = (torch.arange(size, device=x.device) == (index % size).unsqueeze(-1)).any(0)
    shape = [size if k == axis % x.dim() else 1 for k in range(x.dim())]
    return torch.where(chosen.view(shape), value, x)


def _has_rows(node: Node) -> bool:
    """Whether a scatter needs the expansion. The rule takes only a scatter that writes exactly one element of
    every row. A scatter onto a scalar is never expanded.
    """
    x, axis, index = node.args[:3]
    shape, written = (list(each.meta["val"].shape) for each in (x, index))  # type: ignore[union-attr]
    return bool(shape) and written != [1 if k == axis % len(shape) else n for k, n in enumerate(shape)]  # type: ignore[operator]


@expands(aten.scatter.value, where=_has_rows)
def scatter_value(x: Tensor, axis: int, index: Tensor, value: float) -> Tensor:
    """x with one value written to several places of each row."""
    ones = torch.ones(index.shape, device=x.device)
    hits = torch.zeros(x.shape, device=x.device).scatter_add(axis, index, ones)
    return torch.where(hits > 0, value, x)


def _is_of_an_ordering(node: Node) -> bool:
    """Whether the node replaces rows (rather than adding to them), at places that a sort or `topk` returned."""
    indices: Any = node.args[1]
    adds = len(node.args) > 3 and node.args[3]
    return not adds and len(indices) == 1 and are_distinct(indices[0])


def _is_distinct(node: Node) -> bool:
    """Whether all values are known to go to different places, and there are few enough of them to be
    numbered. `index_put` relies on this, because it cannot tell whether places differ.
    """
    indices: Any = node.args[1]
    shape = torch.broadcast_shapes(*(index.meta["val"].shape for index in indices if index is not None))
    known = bool(node.meta.get(DISTINCT)) or _is_of_an_ordering(node)
    return known and math.prod(shape) <= MOST_VALUES


@expands(aten.index_put.default, aten._unsafe_index_put.default, where=_is_distinct)
def index_put(x: Tensor, indices: Sequence[Tensor | None], values: Tensor, _: bool = False) -> Tensor:
    """x with `values` written to the places that `indices` gives. No place may be given twice. For each place
    of x, the value that is written there, if any, is looked up in `values`.
    """
    given = {axis: index for axis, index in enumerate(indices) if index is not None}
    rest = [axis for axis in range(x.dim()) if axis not in given]
    shape = torch.broadcast_shapes(*(index.shape for index in given.values()))
    count = math.prod(shape)
    if count == 0:
        return x.clone()
    # At most one number is added at each place, so the sums are exact. 0 means that nothing is written.
    numbers = torch.arange(1, count + 1, dtype=torch.float32, device=x.device).view(shape)
    unwritten = torch.zeros([x.shape[axis] for axis in given], device=x.device)
    number = aten.index_put.default(unwritten, list(given.values()), numbers, True)
    order = [*given, *rest]
    back = [order.index(axis) for axis in range(x.dim())]
    if values.numel() == 1:
        found = values.reshape(())
    else:
        whole = values.expand(aten.index.Tensor(x, indices).shape)
        adjacent = max(given) - min(given) == len(given) - 1
        start = min(given) if adjacent else 0  # where torch puts the axes of the indices
        end = start + len(shape)
        rows = whole.permute(*range(start, end), *range(start), *range(end, whole.dim()))
        rows = rows.reshape(count, *(x.shape[axis] for axis in rest))
        found = rows[(number.to(torch.int64) - 1).clamp(0, count - 1)].permute(back)
    if count == number.numel():  # every place is written, also if x is an empty tensor
        return found.expand(x.shape)
    hits = (number > 0).view(*number.shape, *(1 for _ in rest)).permute(back)
    return torch.where(hits, found, x)


@expands(aten.scatter_reduce.two)
def scatter_reduce(
    x: Tensor, axis: int, index: Tensor, values: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Reduce each element of x with all values whose index refers to it. Unless `include_self`, the element
    itself is left out of its reduction. To find the values, all indices are compared with all places.
    """
    axis %= x.dim()
    values = values[tuple(slice(0, size) for size in index.shape)]
    neutral = _neutral(reduce, x.dtype)
    wide = [slice(0, size) if k != axis else slice(None) for k, size in enumerate(index.shape)]
    inside, rows = x[tuple(wide)].movedim(axis, -1), index.movedim(axis, -1)
    hits = rows.unsqueeze(-2) == torch.arange(inside.shape[-1], device=x.device).unsqueeze(-1)
    given = torch.where(hits, values.movedim(axis, -1).unsqueeze(-2), neutral)
    touched = hits.any(-1)
    own = inside if include_self else torch.where(touched, neutral, inside)
    if reduce in ("sum", "mean"):
        found = own + given.sum(-1)
        if reduce == "mean":
            terms = hits.sum(-1) + (1 if include_self else 0)
            found = _mean(found, torch.where(terms == 0, 1, terms))
    elif reduce == "prod":
        found = own * given.prod(-1)
    else:
        found = torch.maximum(own, given.amax(-1)) if reduce == "amax" else torch.minimum(own, given.amin(-1))
    result = torch.where(touched, found, inside).movedim(-1, axis)
    for k, size in enumerate(x.shape):
        if k != axis and index.shape[k] < size:
            rest = x.narrow(k, index.shape[k], size - index.shape[k])
            part = [slice(0, n) if j > k and j != axis else slice(None) for j, n in enumerate(index.shape)]
            result = torch.cat((result, rest[tuple(part)]), k)
    return result


def _neutral(reduce: str, dtype: torch.dtype) -> float:
    """The value that leaves every reduction of this kind unchanged. For int64 it fits 32 bits, because a
    program holds an int64 as i32.
    """
    if dtype.is_floating_point or dtype is torch.bool:
        return {"sum": 0.0, "mean": 0.0, "prod": 1.0, "amax": -math.inf, "amin": math.inf}[reduce]
    limits = torch.iinfo(torch.int32 if dtype is torch.int64 else dtype)
    return {"sum": 0, "mean": 0, "prod": 1, "amax": limits.min, "amin": limits.max}[reduce]


def _mean(total: Tensor, terms: Tensor) -> Tensor:
    """total / terms; for integers, the floor, which is exact if `terms` is less than 2^22."""
    if total.is_floating_point():
        return total / terms
    # Each pass divides what is left. The first is off by at most 2^9, the second by 1.
    quotient = torch.zeros_like(total)
    for _ in range(3):
        rest = (total - quotient * terms).to(torch.float32)
        quotient = quotient + (rest / terms.to(torch.float32)).floor().to(total.dtype)
    return quotient


@expands(aten.histc.default)
def histc(x: Tensor, bins: int = 100, low: float = 0, high: float = 0) -> Tensor:
    """The number of elements in each of `bins` equal intervals. Together these range from `low` to `high`,
    or from the smallest to the largest element if `low` and `high` are equal.
    """
    first = x.min() if low == high else torch.full((), low, dtype=x.dtype, device=x.device)
    last = x.max() if low == high else torch.full((), high, dtype=x.dtype, device=x.device)
    first, last = torch.where(first == last, first - 1, first), torch.where(first == last, last + 1, last)
    flat = x.reshape(-1)
    place = ((flat - first) / (last - first) * bins).floor().clamp(0, bins - 1)
    inside = (flat >= first) & (flat <= last)
    hits = (place.unsqueeze(-1) == torch.arange(bins, device=x.device)) & inside.unsqueeze(-1)
    return hits.sum(0).to(x.dtype)


@expands(aten.masked_scatter.default)
def masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """x with the elements of `source` written, in order, to the places where the mask holds."""
    mask, x = torch.broadcast_tensors(mask, x)
    place = mask.reshape(-1).to(torch.int64).cumsum(0) - 1
    last = source.numel() - 1
    given = source.reshape(-1)[place.clamp(0, last)].view(x.shape)
    return torch.where(mask, given, x)


@expands(aten.masked_scatter_backward.default)
def masked_scatter_gradient(g: Tensor, mask: Tensor, shape: Sequence[int]) -> Tensor:
    """The gradient with respect to the source, taken from the places where its elements were written."""
    mask = mask.expand(g.shape).reshape(-1)
    count = math.prod(shape)
    place = (mask.to(torch.int64).cumsum(0) - 1).clamp(0, count - 1)
    given = torch.where(mask, g.reshape(-1), 0.0)
    return g.new_zeros(count).index_add(0, place, given).view(list(shape))
