"""Expands pooling over three axes, and `im2col`. Pooling over two axes is expanded only if no rule applies to
it, for example because the windows are uneven.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch._ops import OpOverload
from torch.fx import Node

from protocol.capture.expansion.table import aten, expands, gradient

Sizes = Sequence[int]


def _ends_outside(node: Node) -> bool:
    """Whether some window begins inside and ends outside the padded tensor, as `ceil_mode` allows."""
    of_gradient = node.target is aten.avg_pool2d_backward.default
    g, *args = node.args if of_gradient else (node, *node.args)
    if len(args) < 5 or not args[4]:
        return False
    x, kernel, stride, padding = args[:4]
    size, step, around = (_each(given, 2) for given in (kernel, stride or kernel, padding))  # type: ignore[arg-type]
    return _counts(x.meta["val"].shape[-2:], size, step, around, False) != list(g.meta["val"].shape[-2:])  # type: ignore[union-attr]


def _is_uneven(node: Node) -> bool:
    """Whether blocks of an adaptive pooling over two axes, or of its gradient, differ in size or overlap."""
    first, result = node.args[0].meta["val"].shape[-2:], node.meta["val"].shape[-2:]  # type: ignore[union-attr]
    of_gradient = node.target is aten._adaptive_avg_pool2d_backward.default
    before, after = (result, first) if of_gradient else (first, result)
    return any(a % b for a, b in zip(before, after))


def _mean_pooling(forward: OpOverload, backward: OpOverload, axes: int) -> None:
    @expands(forward, where=_ends_outside)
    def mean_pool(
        x: Tensor,
        kernel: Sizes,
        stride: Sizes = (),
        padding: Sizes = (0,),
        ceil_mode: bool = False,
        count_padding: bool = True,
        divisor: int | None = None,
    ) -> Tensor:
        """The mean of every window."""
        return _mean_pool(x, axes, kernel, stride, padding, ceil_mode, count_padding, divisor)

    @expands(backward, where=_ends_outside)
    def mean_pool_gradient(g: Tensor, x: Tensor, *args: Any) -> Tensor:
        """The gradient of `mean_pool`: each element receives its share of the gradients of its windows."""
        return gradient(lambda leaf: mean_pool(leaf, *args), x, g)


_mean_pooling(aten.avg_pool2d.default, aten.avg_pool2d_backward.default, 2)
_mean_pooling(aten.avg_pool3d.default, aten.avg_pool3d_backward.default, 3)


@expands(aten.max_pool3d_with_indices.default)
def max_pool_3d(
    x: Tensor,
    kernel: Sizes,
    stride: Sizes = (),
    padding: Sizes = (0,),
    dilation: Sizes = (1,),
    ceil_mode: bool = False,
) -> tuple[Tensor, Tensor]:
    """The maximum of every window of three axes, and the first place where it occurs."""
    size, step, around, apart = (_each(given, 3) for given in (kernel, stride or kernel, padding, dilation))
    spans = [a * (k - 1) + 1 for a, k in zip(apart, size)]
    counts = _counts(x.shape[-3:], spans, step, around, ceil_mode)
    grid = torch.arange(math.prod(x.shape[-3:]), device=x.device).view(x.shape[-3:])
    values = _windows(_padded(x, spans, step, around, counts, -math.inf), spans, step)
    places = _windows(_padded(grid, spans, step, around, counts, 0), spans, step)
    values, places = (
        each[..., :: apart[0], :: apart[1], :: apart[2]].flatten(-3) for each in (values, places)
    )
    found, chosen = values.max(-1)
    return found, places.expand(values.shape).gather(-1, chosen.unsqueeze(-1)).squeeze(-1)


@expands(aten.max_pool3d_with_indices_backward.default)
def max_pool_gradient_3d(g: Tensor, x: Tensor, *rest: object) -> Tensor:
    """The gradient of `max_pool_3d`: each element receives the gradients of the windows that selected it."""
    return _given_back(g, x, rest[-1], 3)


@expands(aten._adaptive_avg_pool2d.default, aten._adaptive_avg_pool3d.default, where=_is_uneven)
def adaptive_mean_pool(x: Tensor, to: Sizes) -> Tensor:
    """Means of blocks, computed along one axis after the other. The sizes of the blocks differ by at most one."""
    for axis, count in zip(range(-len(to), 0), to):
        parts = [x.narrow(axis, low, size).mean(axis) for low, size in _blocks(x.shape[axis], count)]
        x = torch.stack(parts, axis)
    return x


def _adaptive_mean_gradient(backward: OpOverload, axes: int) -> None:
    @expands(backward, where=_is_uneven)
    def adaptive_mean_pool_gradient(g: Tensor, x: Tensor) -> Tensor:
        """The gradient of `adaptive_mean_pool`: each element receives its share of its blocks' gradients."""
        return gradient(lambda leaf: adaptive_mean_pool(leaf, g.shape[-axes:]), x, g)


_adaptive_mean_gradient(aten._adaptive_avg_pool2d_backward.default, 2)
_adaptive_mean_gradient(aten._adaptive_avg_pool3d_backward.default, 3)


@expands(aten.adaptive_max_pool2d.default)
def adaptive_max_pool_2d(x: Tensor, to: Sizes) -> tuple[Tensor, Tensor]:
    """The maximum of every block, and the first place where it occurs. The maximum is found along each row of
    the block first, and then over the rows.
    """
    width = x.shape[-1]
    columns = [(x.narrow(-1, low, size).max(-1), low) for low, size in _blocks(width, to[1])]
    values = torch.stack([found.values for found, _ in columns], -1)
    places = torch.stack([found.indices + low for found, low in columns], -1)
    best, at = [], []
    for low, size in _blocks(x.shape[-2], to[0]):
        found, row = values.narrow(-2, low, size).max(-2, keepdim=True)
        best.append(found)
        at.append((row + low) * width + places.narrow(-2, low, size).gather(-2, row))
    return torch.cat(best, -2), torch.cat(at, -2)


@expands(aten.adaptive_max_pool2d_backward.default)
def adaptive_max_pool_gradient_2d(g: Tensor, x: Tensor, places: Tensor) -> Tensor:
    """The gradient of `adaptive_max_pool_2d`: each element receives the gradients of the blocks that selected it."""
    return _given_back(g, x, places, 2)


@expands(aten.im2col.default)
def im2col(x: Tensor, kernel: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes) -> Tensor:
    """The elements of every window as a column."""
    size, apart, around, step = (_each(given, 2) for given in (kernel, dilation, padding, stride))
    spans = [a * (k - 1) + 1 for a, k in zip(apart, size)]
    counts = _counts(x.shape[-2:], spans, step, around, False)
    windows = _windows(_padded(x, spans, step, around, counts, 0), spans, step)
    windows = windows[..., :: apart[0], :: apart[1]]
    lead, channels = x.shape[:-3], x.shape[-3]
    columns = windows.movedim((-4, -3), (-2, -1))
    return columns.reshape(*lead, channels * size[0] * size[1], counts[0] * counts[1])


@expands(aten.col2im.default)
def col2im(x: Tensor, to: Sizes, kernel: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes) -> Tensor:
    """Columns put back as windows, summed where they overlap."""
    channels = x.shape[-2] // math.prod(_each(kernel, 2))
    image = x.new_zeros((*x.shape[:-2], channels, *to))
    return gradient(lambda leaf: im2col(leaf, kernel, dilation, padding, stride), image, x)


def _mean_pool(
    x: Tensor,
    axes: int,
    kernel: Sizes,
    stride: Sizes,
    padding: Sizes,
    ceil_mode: bool,
    count_padding: bool,
    divisor: int | None,
) -> Tensor:
    size, step, around = (_each(given, axes) for given in (kernel, stride or kernel, padding))
    counts = _counts(x.shape[-axes:], size, step, around, ceil_mode)
    last = list(range(-axes, 0))
    total = _windows(_padded(x, size, step, around, counts, 0), size, step).sum(last)
    if divisor is not None:
        return total / divisor
    ones = x.new_ones(x.shape[-axes:])
    if count_padding:
        ones = F.pad(ones, [p for p in reversed(around) for _ in range(2)], value=1.0)
        around = [0] * axes
    return total / _windows(_padded(ones, size, step, around, counts, 0), size, step).sum(last)


def _counts(shape: Sizes, spans: Sizes, step: Sizes, around: Sizes, ceil_mode: bool) -> list[int]:
    """The number of windows along each axis. With `ceil_mode`, the last window must begin inside the tensor
    or its leading padding.
    """
    found = []
    for length, span, s, p in zip(shape, spans, step, around):
        rest = length + 2 * p - span
        count = (-(-rest // s) if ceil_mode else rest // s) + 1
        found.append(count - 1 if ceil_mode and (count - 1) * s >= length + p else count)
    return found


def _padded(x: Tensor, spans: Sizes, step: Sizes, around: Sizes, counts: Sizes, fill: float) -> Tensor:
    """The tensor padded with `fill`: by the leading padding, and at the end as far as the windows reach."""
    widths: list[int] = []
    for length, span, s, p, count in zip(x.shape[-len(spans) :], spans, step, around, counts):
        widths = [p, (count - 1) * s + span - p - length, *widths]
    return F.pad(x, widths, value=fill)


def _windows(x: Tensor, spans: Sizes, step: Sizes) -> Tensor:
    """All windows: […, windows along each axis, elements of a window along each axis]."""
    first = x.dim() - len(spans)
    for k, (span, s) in enumerate(zip(spans, step)):
        x = x.unfold(first + k, span, s)
    return x


def _given_back(g: Tensor, x: Tensor, places: object, axes: int) -> Tensor:
    assert isinstance(places, Tensor)
    flat = x.new_zeros(x.shape).flatten(-axes)
    return flat.scatter_add(-1, places.flatten(-axes), g.flatten(-axes)).view(x.shape)


def _blocks(length: int, count: int) -> list[tuple[int, int]]:
    """The first element and the length of every block, as adaptive pooling partitions an axis in torch."""
    starts = [k * length // count for k in range(count)]
    ends = [-(-(k + 1) * length // count) for k in range(count)]
    return [(low, high - low) for low, high in zip(starts, ends)]


def _each(given: Sizes, axes: int) -> list[int]:
    return list(given) * axes if len(given) == 1 else list(given)
