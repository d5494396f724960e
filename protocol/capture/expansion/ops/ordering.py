"""Sorting and ranking by comparing every element with every other, with ties decided by place.

torch does not define the order of equal elements unless a stable order is requested; here they keep their
order.
"""

from __future__ import annotations

import torch
from torch import Tensor

from protocol.capture.expansion.table import aten, expands


@expands(aten.sort.default)
def sort(x: Tensor, axis: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    """The sorted elements and their original places; equal elements keep their order."""
    return _first(x, x.shape[axis] if x.dim() else 1, axis, descending)


@expands(aten.sort.stable)
def sort_stable(
    x: Tensor,
    *,
    stable: bool | None = None,  # noqa: ARG001
    dim: int = -1,
    descending: bool = False,
) -> tuple[Tensor, Tensor]:
    """The same as `sort`, which is always stable."""
    return sort(x, dim, descending)


@expands(aten.topk.default)
def topk(
    x: Tensor,
    count: int,
    axis: int = -1,
    largest: bool = True,
    in_order: bool = True,  # noqa: ARG001
) -> tuple[Tensor, Tensor]:
    """The `count` largest elements in order (the `count` smallest if not `largest`), and the place of each."""
    return _first(x, count, axis, largest)


@expands(aten.kthvalue.default)
def kthvalue(x: Tensor, k: int, axis: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The k-th smallest element, counted from 1, and its place."""
    values, places = (found.narrow(axis, k - 1, 1) for found in _first(x, k, axis, False))
    return (values, places) if keepdim else (values.squeeze(axis), places.squeeze(axis))


@expands(aten.median.default)
def median(x: Tensor) -> Tensor:
    """The lower median of all elements; NaN if any is NaN."""
    return median_along(x.reshape(-1), 0)[0]


@expands(aten.median.dim)
def median_along(x: Tensor, axis: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The lower median along an axis, and its place. If there is a NaN, the result is the first NaN and its place."""
    places = kthvalue(x, (x.shape[axis] + 1) // 2, axis, True)[1]
    if x.is_floating_point():
        nan = torch.isnan(x)
        places = torch.where(nan.any(axis, True), nan.int().argmax(axis, True), places)
    values = x.gather(axis, places)
    return (values, places) if keepdim else (values.squeeze(axis), places.squeeze(axis))


@expands(aten.searchsorted.Tensor)
def searchsorted(
    row: Tensor,
    x: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """For each element of x, how many elements of a sorted row are less than it. If `right`, or if `side` is
    "right": how many are less than or equal to it. All elements count as less than NaN.
    """
    if sorter is not None:
        row = row.gather(-1, sorter)
    return _count_below(row.unsqueeze(-2), x, right or side == "right", out_int32)


@expands(aten.bucketize.Tensor)
def bucketize(x: Tensor, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """The index of the bucket of each element of x. The sorted `boundaries` separate the buckets; NaN is in
    the last bucket.
    """
    return _count_below(boundaries, x, right, out_int32)


@expands(aten.isin.Tensor_Tensor)
def isin(x: Tensor, among: Tensor, *, assume_unique: bool = False, invert: bool = False) -> Tensor:  # noqa: ARG001
    """Whether each element of x occurs in `among`; if `invert`, whether it does not."""
    if not among.numel():
        return torch.full(x.shape, invert, device=x.device)
    found = (x.unsqueeze(-1) == among.reshape(-1)).any(-1)
    return ~found if invert else found


def _count_below(rows: Tensor, x: Tensor, right: bool, out_int32: bool) -> Tensor:
    """For each element of x, how many elements of its row are less than it; if `right`, how many are less
    than or equal to it. All elements count as less than NaN.
    """
    each = x.unsqueeze(-1)
    before = rows <= each if right else rows < each
    if x.is_floating_point():
        before = before | torch.isnan(each)
    return before.to(torch.int32 if out_int32 else torch.int64).sum(-1)


def _first(x: Tensor, count: int, axis: int, descending: bool) -> tuple[Tensor, Tensor]:
    """The first `count` elements of the sorted order along an axis, and their places, found by ranking every
    element.
    """
    if not x.dim():
        return x.clone(), torch.zeros((), dtype=torch.int64, device=x.device)
    rows = x.transpose(axis, -1)
    place = torch.arange(rows.shape[-1], device=x.device)
    mine, other = rows.unsqueeze(-1), rows.unsqueeze(-2)
    ahead, same = (other > mine if descending else other < mine), other == mine
    if x.is_floating_point():  # NaN counts as larger than all numbers
        nan, other_nan = torch.isnan(mine), torch.isnan(other)
        ahead = ahead | (other_nan & ~nan if descending else nan & ~other_nan)
        same = same | (nan & other_nan)
    ahead = ahead | (same & (place < place.unsqueeze(-1)))
    rank = ahead.to(torch.int64).sum(-1)
    wanted = torch.arange(count, device=x.device).unsqueeze(-1)
    places = torch.where(rank.unsqueeze(-2) == wanted, place, 0).sum(-1)
    places = places.clamp_max(rows.shape[-1] - 1)  # changes no value, but shows a bound to `analysis`
    return rows.gather(-1, places).transpose(axis, -1), places.transpose(axis, -1)
