"""Convolutions over three axes, as sums of convolutions over two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch.nn.functional as F
from torch import Tensor
from torch.fx import Node

from protocol.capture.expansion.table import aten, expands, gradient, gradients


def _has_three_axes(node: Node) -> bool:
    weight: Any = node.args[2] if node.target is aten.convolution_backward.default else node.args[1]
    return len(weight.meta["val"].shape) == 5


@expands(aten.convolution.default, where=_has_three_axes)
def convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    more: Sequence[int],
    groups: int,
) -> Tensor:
    """The forward pass. A transposed convolution is the gradient of a plain one with respect to its input."""
    stride, padding, dilation, more = (_of_each_axis(given) for given in (stride, padding, dilation, more))
    if not transposed:
        return _plain(x, weight, bias, stride, padding, dilation, groups)
    spans = [d * (size - 1) + 1 for d, size in zip(dilation, weight.shape[2:])]
    rest = [
        (size - 1) * s - 2 * p + span + extra
        for size, s, p, span, extra in zip(x.shape[2:], stride, padding, spans, more)
    ]
    before = x.new_zeros((x.shape[0], weight.shape[1] * groups, *rest))
    y = gradient(lambda leaf: _plain(leaf, weight, None, stride, padding, dilation, groups), before, x)
    return y if bias is None else y + bias.view(-1, 1, 1, 1)


@expands(aten.convolution_backward.default, where=_has_three_axes)
def convolution_gradient(
    g: Tensor,
    x: Tensor,
    weight: Tensor,
    _: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    more: Sequence[int],
    groups: int,
    wanted: Sequence[bool],
) -> tuple[Tensor | None, ...]:
    """Gradients with respect to input, weight and bias; None for those that are not requested."""
    found = gradients(
        lambda image, kernel: convolution(
            image, kernel, None, stride, padding, dilation, transposed, more, groups
        ),
        (x, weight),
        g,
    )
    at_bias = g.sum((0, 2, 3, 4))
    return tuple(each if asked else None for each, asked in zip((*found, at_bias), wanted, strict=True))


def _plain(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Tensor:
    """A plain convolution: one two-axis convolution per plane of the kernel, and the f32 sum of these in order."""
    x = F.pad(x, (0, 0, 0, 0, padding[0], padding[0]))
    samples, channels, depth, height, width = x.shape
    planes = (depth - dilation[0] * (weight.shape[2] - 1) - 1) // stride[0] + 1
    total: Tensor | None = None
    for k in range(weight.shape[2]):
        start = k * dilation[0]
        part = x[:, :, start : start + (planes - 1) * stride[0] + 1 : stride[0]]
        part = part.transpose(1, 2).reshape(samples * planes, channels, height, width)
        y = F.conv2d(
            part, weight[:, :, k], bias if k == 0 else None, stride[1:], padding[1:], dilation[1:], groups
        )
        total = y if total is None else total + y
    assert total is not None, "a kernel has a depth"
    return total.view(samples, planes, *total.shape[1:]).transpose(1, 2)


def _of_each_axis(given: Sequence[int]) -> list[int]:
    return list(given) * 3 if len(given) == 1 else list(given)
