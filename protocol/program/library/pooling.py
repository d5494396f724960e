"""Pooling over two axes, and the gradients of pooling. Sums are those of arithmetic.md section 5, with one
exponent per window.

The maximum of a window is its first NaN, otherwise the first of its largest elements. This agrees with torch,
except that torch takes the last NaN. Indices are flat positions in the height x width plane of the input.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from protocol.numerics.operations import div, select
from protocol.numerics.reductions import FLOAT64_TERMS, SUM_BITS
from protocol.numerics.rows import exponent, round_exact, row_scale, whole_in_row
from protocol.numerics.sums import sum_f32
from protocol.numerics.types import DType, canonical
from protocol.program.builder import Builder, Value
from protocol.program.library.function import define
from protocol.program.library.loss import NOWHERE
from protocol.program.library.rows import count_up, sum_last
from protocol.program.library.windows import (
    Sliding,
    padded,
    padded_tensor,
    spread,
    spread_tensor,
    window_strides,
)


def _max_pool(x: Tensor, *, rows: int, columns: int, **sliding: int) -> tuple[Tensor, Tensor]:
    s = Sliding(**sliding)
    first, *others = _seen_tensors(padded_tensor(x, s, (rows, columns), -math.inf), s, (rows, columns))
    largest, inside = first, torch.zeros(first.shape, dtype=torch.int32, device=x.device)
    for k, other in enumerate(others, 1):
        better = (other > largest) | ((other != other) & (largest == largest))
        inside += (k - inside).mul_(better)
        largest = torch.maximum(largest, other)

    def starts(count: int, stride: int, padding: int) -> Tensor:
        return torch.arange(count, dtype=torch.int32, device=x.device) * stride - padding

    def in_plane(at: Tensor, dilation: int) -> Tensor:
        return torch.where(at < 0, at % dilation, at)

    down = starts(rows, s.stride_y, s.padding_y)[:, None] + inside // s.kernel_x * s.dilation_y
    right = starts(columns, s.stride_x, s.padding_x) + inside % s.kernel_x * s.dilation_x
    return canonical(largest + 0.0), in_plane(down, s.dilation_y) * x.shape[3] + in_plane(right, s.dilation_x)


@define("max_pool", kernel=_max_pool)
def max_pool(b: Builder, x: Value, *, rows: int, columns: int, **sliding: int) -> tuple[Value, Value]:
    """The maximum of each window of f32 [N, C, H, W], and its position, i32. Both results are [N, C, rows,
    columns].

    If all elements of a window are -inf, the position is that of the window's first element that is not
    padding.
    """
    s = Sliding(**sliding)
    shape = (*x.shape[:2], rows, columns)
    seen = b.pad_rows(_seen(b, padded(b, x, s, (rows, columns), -math.inf), s, (rows, columns)), -math.inf)
    inside = b.reshape(b.argmax(seen), shape)

    def starts(count: int, stride: int, padding: int) -> Value:
        return b.sub(b.mul(count_up(b, count), b.i32(stride)), b.i32(padding))

    def along(start: Value, offsets: Value, dilation: int, padding: int) -> Value:
        # No primitive divides integers, so offsets by the position inside a window are a table.
        table = b.reshape(b.expand(offsets, (s.kernel_y, s.kernel_x)), (s.kernel_y * s.kernel_x,))
        at = b.add(start, b.gather(table, inside))
        for _ in range(-(-padding // dilation)):
            at = b.select(b.lt(at, b.i32(0)), b.add(at, b.i32(dilation)), at)
        return at

    offsets_y = b.reshape(b.mul(count_up(b, s.kernel_y), b.i32(s.dilation_y)), (s.kernel_y, 1))
    offsets_x = b.mul(count_up(b, s.kernel_x), b.i32(s.dilation_x))
    down = along(
        b.reshape(starts(rows, s.stride_y, s.padding_y), (rows, 1)), offsets_y, s.dilation_y, s.padding_y
    )
    right = along(starts(columns, s.stride_x, s.padding_x), offsets_x, s.dilation_x, s.padding_x)
    return b.reshape(b.max(seen), shape), b.add(b.mul(down, b.i32(x.shape[3])), right)


def _max_pool_grad(g: Tensor, index: Tensor, *, height: int, width: int, **sliding: int) -> Tensor:
    s = Sliding(**sliding)
    own = torch.arange(height * width, dtype=torch.int32, device=g.device).reshape(height, width)
    came = _seen_tensors(spread_tensor(index, s, height, width, NOWHERE), s.unit(), (height, width))
    each = _seen_tensors(spread_tensor(g, s, height, width, 0.0), s.unit(), (height, width))
    nothing = torch.zeros((), dtype=torch.float32, device=g.device)

    def chosen(i: Tensor, x: Tensor) -> Tensor:
        return select(i == own, x, nothing)

    return _sum_of([partial(chosen, i, x) for i, x in zip(came, each, strict=True)])


@define("max_pool_grad", kernel=_max_pool_grad)
def max_pool_grad(b: Builder, g: Value, index: Value, *, height: int, width: int, **sliding: int) -> Value:
    """The gradient of x [N, C, height, width]. Each element is the sum of g over the windows that have their
    maximum at this element.
    """
    s = Sliding(**sliding)
    shape = (*g.shape[:2], height, width)
    came = _seen(b, spread(b, index, s, height, width, NOWHERE), s.unit(), (height, width))
    own = b.reshape(count_up(b, height * width), (1, height * width, 1))
    rows = (g.shape[0] * g.shape[1], height * width, came.shape[-1])
    each = b.reshape(_seen(b, spread(b, g, s, height, width, 0.0), s.unit(), (height, width)), rows)
    chosen = b.select(b.eq(b.reshape(came, rows), own), each, b.constant(DType.F32, (), 0.0))
    return b.reshape(sum_last(b, chosen), shape)


def _mean_pool(x: Tensor, *, divisor: int, include_padding: bool, **sliding: int) -> Tensor:
    s = Sliding(**sliding)
    count = s.count(x.shape[2], x.shape[3])
    total = _sum_of([seen.clone for seen in _seen_tensors(padded_tensor(x, s, count, 0.0), s, count)])
    return div(total, _terms_tensor(x, s, divisor, include_padding))


@define("mean_pool", kernel=_mean_pool)
def mean_pool(b: Builder, x: Value, *, divisor: int, include_padding: bool, **sliding: int) -> Value:
    """The mean of each window of f32 [N, C, H, W]: its rounded sum divided by its number of terms, and
    rounded again.

    The number of terms is `divisor` or, without `include_padding`, the number of the window's elements inside
    the input.
    """
    s = Sliding(**sliding)
    count = s.count(x.shape[2], x.shape[3])
    total = sum_last(b, _seen(b, padded(b, x, s, count, 0.0), s, count))
    terms = _terms(b, s, divisor, include_padding, x.shape[2], x.shape[3])
    return b.div(b.reshape(total, (*x.shape[:2], *count)), terms)


def _mean_pool_grad(
    g: Tensor, *, height: int, width: int, divisor: int, include_padding: bool, **sliding: int
) -> Tensor:
    s = Sliding(**sliding)
    plane = torch.empty((1, 1, height, width), dtype=torch.float32, device=g.device)
    each = div(g, _terms_tensor(plane, s, divisor, include_padding))
    seen = _seen_tensors(spread_tensor(each, s, height, width, 0.0), s.unit(), (height, width))
    return _sum_of([part.clone for part in seen])


@define("mean_pool_grad", kernel=_mean_pool_grad)
def mean_pool_grad(
    b: Builder,
    g: Value,
    *,
    height: int,
    width: int,
    divisor: int,
    include_padding: bool,
    **sliding: int,
) -> Value:
    """The gradient of the pooled x [N, C, height, width]. For each element of x, it is the sum over the
    windows that contain the element: g of the window, divided by the number of terms of its mean.
    """
    s = Sliding(**sliding)
    each = b.div(g, _terms(b, s, divisor, include_padding, height, width))
    seen = _seen(b, spread(b, each, s, height, width, 0.0), s.unit(), (height, width))
    return b.reshape(sum_last(b, seen), (*g.shape[:2], height, width))


def _terms(b: Builder, s: Sliding, divisor: int, include_padding: bool, height: int, width: int) -> Value:
    """The number of terms of each window, f32 [] or [OH, OW]."""
    if include_padding:
        return b.constant(DType.F32, (), float(divisor))
    ones = padded(b, b.constant(DType.F32, (1, 1, height, width), 1.0), s, s.count(height, width), 0.0)
    count = s.count(height, width)
    return b.reshape(sum_last(b, _seen(b, ones, s, count)), count)


def _terms_tensor(x: Tensor, s: Sliding, divisor: int, include_padding: bool) -> Tensor:
    """`_terms` on tensors; x [N, C, H, W] determines the size and the device."""
    if include_padding:
        return torch.full((), divisor, dtype=torch.float32, device=x.device)
    count = s.count(x.shape[2], x.shape[3])
    ones = padded_tensor(torch.ones_like(x[:1, :1]), s, count, 0.0)
    return torch.stack(_seen_tensors(ones, s, count)).sum(0)[0, 0]  # sums of whole numbers, exact in f32


def _seen(b: Builder, whole: Value, s: Sliding, count: tuple[int, int]) -> Value:
    """The windows of a padded tensor [N, C, H, W] as a matrix. It has N * C * OH * OW rows, one per window,
    and KH * KW columns, one per element of the kernel.
    """
    t = window_strides(whole.shape, s)
    n, c = whole.shape[:2]
    shape = (n, c, *count, s.kernel_y, s.kernel_x)
    seen = b.strided(whole, shape, (t["n"], t["c"], t["y"], t["x"], t["ky"], t["kx"]))
    return b.reshape(seen, (n * c * count[0] * count[1], s.kernel_y * s.kernel_x))


def _seen_tensors(whole: Tensor, s: Sliding, count: tuple[int, int]) -> list[Tensor]:
    """Views of a padded tensor [N, C, H, W], one for each of the KH * KW elements of the kernel. Each view is
    [N, C, OH, OW].
    """

    def along(k: int, dilation: int, stride: int, windows: int) -> slice:
        return slice(k * dilation, k * dilation + (windows - 1) * stride + 1, stride)

    return [
        whole[
            :, :, along(y, s.dilation_y, s.stride_y, count[0]), along(x, s.dilation_x, s.stride_x, count[1])
        ]
        for y in range(s.kernel_y)
        for x in range(s.kernel_x)
    ]


def _sum_of(terms: Sequence[Callable[[], Tensor]]) -> Tensor:
    """The element-wise `sum_f32` of f32 tensors of one shape. If there are at most `FLOAT64_TERMS` tensors,
    each is computed twice, so that it need not be kept.
    """
    if len(terms) > FLOAT64_TERMS:
        return sum_f32(torch.stack([term() for term in terms]), axis=0).squeeze(0)
    largest = terms[0]().abs()
    for term in terms[1:]:
        largest = torch.maximum(largest, term().abs_())
    e = exponent(largest.unsqueeze(0), 0).squeeze(0)
    total = torch.zeros(largest.shape, dtype=torch.float64, device=largest.device)
    del largest
    for term in terms:
        total += whole_in_row(term(), e, SUM_BITS)
    return round_exact(total, row_scale(e, SUM_BITS))
