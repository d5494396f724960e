"""Pooling and nearest-neighbour resizing over the last two axes, and their gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from protocol.capture.lowering.checks import Unsupported
from protocol.capture.lowering.context import Lowering
from protocol.capture.lowering.rules import lowers
from protocol.capture.lowering.views import View
from protocol.program.builder import Value
from protocol.program.library import pooling, sums
from protocol.program.library.windows import Sliding

aten = torch.ops.aten


@lowers(aten.max_pool2d_with_indices.default)
def max_pool(
    lowering: Lowering,
    node: torch.fx.Node,
    x: View,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil_mode: bool = False,  # noqa: ARG001 - given by the node's shape
) -> tuple[View, View]:
    """The maximum of every window, and its position."""
    rows, columns = node.meta["val"][0].shape[-2:]
    sliding = _sliding(kernel, stride, padding, dilation)
    lowering.called.append(pooling.max_pool.name)
    y, index = pooling.max_pool.call(
        lowering.builder, _batched(lowering, x), rows=rows, columns=columns, **sliding.attributes()
    )
    shape = tuple(node.meta["val"][0].shape)
    return _shaped(lowering, View.of(y), shape), _shaped(lowering, View.of(index), shape)


@lowers(aten.max_pool2d_with_indices_backward.default)
def max_pool_grad(
    lowering: Lowering,
    _: torch.fx.Node,
    g: View,
    x: View,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,  # noqa: ARG001 - given by the shape of g
    index: View,
) -> View:
    """Every element gets the sum of the gradients of the windows that chose it."""
    sliding = _sliding(kernel, stride, padding, dilation)
    operands = (_batched(lowering, each) for each in (g, index))
    height, width = x.shape[-2:]
    result = lowering.call(
        pooling.max_pool_grad, *operands, height=height, width=width, **sliding.attributes()
    )
    return _shaped(lowering, View.of(result), x.shape)


@lowers(aten.avg_pool2d.default)
def mean_pool(
    lowering: Lowering,
    node: torch.fx.Node,
    x: View,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> View:
    """The mean of every window."""
    sliding = _sliding(kernel, stride, padding, (1,))
    shape = tuple(node.meta["val"].shape)
    return _mean_pool(lowering, x, shape, sliding, ceil_mode, count_include_pad, divisor_override)


@lowers(aten.avg_pool2d_backward.default)
def mean_pool_grad(
    lowering: Lowering,
    _: torch.fx.Node,
    g: View,
    x: View,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> View:
    """Every element gets its share of the gradients of its windows."""
    sliding = _sliding(kernel, stride, padding, (1,))
    return _mean_pool_grad(lowering, g, x.shape, sliding, ceil_mode, count_include_pad, divisor_override)


@lowers(aten._adaptive_avg_pool2d.default)
def adaptive_mean_pool(lowering: Lowering, node: torch.fx.Node, x: View, _: Sequence[int]) -> View:
    """The means of equal blocks."""
    shape = tuple(node.meta["val"].shape)
    return _mean_pool(lowering, x, shape, _blocks(x.shape, shape))


@lowers(aten._adaptive_avg_pool2d_backward.default)
def adaptive_mean_pool_grad(lowering: Lowering, _: torch.fx.Node, g: View, x: View) -> View:
    """Every element gets its share of its block's gradient."""
    return _mean_pool_grad(lowering, g, x.shape, _blocks(x.shape, g.shape))


@lowers(aten.upsample_nearest2d.default, aten.upsample_nearest2d.vec)
def upsample_nearest(lowering: Lowering, node: torch.fx.Node, x: View, *_: object, **__: object) -> View:
    """Every element repeated as a block."""
    b = lowering.builder
    shape = tuple(node.meta["val"].shape)
    n, c, height, width = x.shape
    blocks = _blocks(shape, x.shape)
    apart = x.apply(b, aten.view.default, (n, c, height, 1, width, 1))
    wide = apart.apply(b, aten.expand.default, (n, c, height, blocks.kernel_y, width, blocks.kernel_x))
    return View.of(b.reshape(wide.elements(b), shape))


@lowers(aten.upsample_nearest2d_backward.default)
def upsample_nearest_grad(lowering: Lowering, node: torch.fx.Node, g: View, *_: object, **__: object) -> View:
    """The sum of g over every block."""
    b = lowering.builder
    shape = n, c, height, width = tuple(node.meta["val"].shape)
    blocks = _blocks(g.shape, shape)
    size = blocks.kernel_y, blocks.kernel_x
    apart = g.apply(b, aten.view.default, (n, c, height, size[0], width, size[1]))
    rows = apart.apply(b, aten.permute.default, (0, 1, 2, 4, 3, 5))
    flat = rows.apply(b, aten.view.default, (math.prod(shape), math.prod(size)))
    return View.of(b.reshape(lowering.call(sums.sum_rows, flat.elements(b)), shape))


def _mean_pool(
    lowering: Lowering,
    x: View,
    shape: tuple[int, ...],
    sliding: Sliding,
    ceil_mode: bool = False,
    include_padding: bool = True,
    divisor: int | None = None,
) -> View:
    terms = _terms(sliding, x.shape, shape, ceil_mode, include_padding, divisor)
    y = lowering.call(pooling.mean_pool, _batched(lowering, x), **terms, **sliding.attributes())
    return _shaped(lowering, View.of(y), shape)


def _mean_pool_grad(
    lowering: Lowering,
    g: View,
    shape: tuple[int, ...],
    sliding: Sliding,
    ceil_mode: bool = False,
    include_padding: bool = True,
    divisor: int | None = None,
) -> View:
    terms = _terms(sliding, shape, g.shape, ceil_mode, include_padding, divisor)
    sizes = {"height": shape[-2], "width": shape[-1]}
    result = lowering.call(
        pooling.mean_pool_grad, _batched(lowering, g), **sizes, **terms, **sliding.attributes()
    )
    return _shaped(lowering, View.of(result), shape)


def _terms(
    s: Sliding,
    of: tuple[int, ...],
    to: tuple[int, ...],
    ceil_mode: bool,
    include_padding: bool,
    divisor: int | None,
) -> dict[str, int]:
    if ceil_mode and s.count(of[-2], of[-1]) != to[-2:]:
        raise Unsupported("with windows that end outside", "use ceil_mode=False, or pad the input")
    fixed = include_padding or divisor is not None or (s.padding_y, s.padding_x) == (0, 0)
    return {"divisor": divisor or s.kernel_y * s.kernel_x, "include_padding": int(fixed)}


def _blocks(large: tuple[int, ...], small: tuple[int, ...]) -> Sliding:
    """Windows that divide the larger plane into equal blocks, one per element of the smaller plane."""
    (height, width), (rows, columns) = large[-2:], small[-2:]
    if height % rows or width % columns:
        raise Unsupported(
            f"between {height} x {width} and {rows} x {columns}",
            "choose sizes that divide, so that all blocks are equal",
        )
    y, x = height // rows, width // columns
    return Sliding(y, x, y, x, 0, 0, 1, 1)


def _sliding(
    kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int]
) -> Sliding:
    sizes = (tuple(each) * (2 // len(each)) for each in (kernel, stride or kernel, padding, dilation))
    return Sliding(*(size for pair in sizes for size in pair))


def _batched(lowering: Lowering, x: View) -> Value:
    whole = x if len(x.shape) == 4 else x.apply(lowering.builder, aten.unsqueeze.default, 0)
    return whole.elements(lowering.builder)


def _shaped(lowering: Lowering, x: View, shape: tuple[int, ...]) -> View:
    return x.apply(lowering.builder, aten.view.default, shape)
