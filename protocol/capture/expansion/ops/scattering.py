"""Writes to places given by data, with reductions of values that go to the same place; histograms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from protocol.capture.expansion.distinct import DISTINCT, are_distinct
from protocol.capture.expansion.table import aten, expands


@expands(aten.index_fill.int_Scalar, aten.index_fill.int_Tensor)
def index_fill(x: Tensor, axis: int, index: Tensor, value: Tensor | float) -> Tensor:
    """x with one value written to some slices along an axis."""
    index = index.reshape(-1)
    size = x.shape[axis]
    chosen = (torch.arange(size, device=x.device) == (index % size).unsqueeze(-1)).any(0)
    shape = [size if k == axis % x.dim() else 1 for k in range(x.dim())]
    return torch.where(chosen.view(shape), value, x)


def _has_rows(node: Node) -> bool:
    """Whether more than one element per row is written."""
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
    """Whether rows are written to places that a sort or `topk` returned."""
    indices: Any = node.args[1]
    adds = len(node.args) > 3 and node.args[3]
    return not adds and len(indices) == 1 and are_distinct(indices[0])


def _is_distinct(node: Node) -> bool:
    """Whether it is known that no two values go to the same place; `index_put`'s own rule cannot tell."""
    constant = bool(node.meta.get(DISTINCT)) and node.meta["val"].is_floating_point()
    return constant or _is_of_an_ordering(node)


@expands(aten.index_put.default, aten._unsafe_index_put.default, where=_is_distinct)
def index_put(x: Tensor, indices: Sequence[Tensor | None], values: Tensor, _: bool = False) -> Tensor:
    """x with elements replaced at distinct places: floats by sums onto zeros, integers by looking up rows."""
    if not x.is_floating_point():
        return _replaced_rows(x, indices, values)
    zeros, one = torch.zeros(x.shape, device=x.device), torch.ones((), device=x.device)
    hits = aten.index_put.default(zeros, indices, one, True)
    given = aten.index_put.default(zeros, indices, values, True)
    return torch.where(hits > 0, given, x)


def _replaced_rows(x: Tensor, indices: Sequence[Tensor | None], values: Tensor) -> Tensor:
    (places,) = indices
    assert places is not None, "an ordering gave them"
    hits = places == torch.arange(len(x), device=x.device).unsqueeze(1)
    rows = values.expand(len(places), *x.shape[1:])[hits.int().argmax(1)]
    if len(places) == len(x):
        return rows
    return torch.where(hits.any(1).view(-1, *(1 for _ in x.shape[1:])), rows, x)


@expands(aten.scatter_reduce.two)
def scatter_reduce(
    x: Tensor, axis: int, index: Tensor, values: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Each element reduced with all values whose index refers to it, by comparing all indices and places."""
    axis %= x.dim()
    values = values[tuple(slice(0, size) for size in index.shape)]
    neutral = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "amax": -math.inf, "amin": math.inf}[reduce]
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
            found = found / torch.where(terms == 0, 1, terms)
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
