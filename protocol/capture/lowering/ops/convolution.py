"""Convolutions over one or two axes, including transposed ones, and their gradients: arithmetic.md section 4."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from protocol.capture.analysis.roles import Role
from protocol.capture.lowering.checks import Unsupported
from protocol.capture.lowering.context import Lowering
from protocol.capture.lowering.rules import lowers
from protocol.capture.lowering.views import View
from protocol.program.library import convolution, sums
from protocol.program.library.windows import Sliding

aten = torch.ops.aten
Mask = Sequence[bool]


@lowers(aten.convolution.default)
def convolve(
    lowering: Lowering,
    node: torch.fx.Node,
    x: View,
    w: View,
    bias: View | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    _: Sequence[int],
    groups: int,
) -> View:
    """The forward pass. A transposed convolution is the gradient of a plain one with respect to its input."""
    b = lowering.builder
    flat, planes, kernels = _planes(lowering, x, w)
    sliding = _sliding(flat, kernels, stride, padding, dilation) | _bits(lowering, Role.CONVOLUTION)
    operands = [planes.elements(b), kernels.elements(b)]
    shape = tuple(node.meta["val"].shape)
    if not transposed:
        operands += [] if bias is None else [bias.elements(b)]
        y = lowering.call(convolution.conv, *operands, groups=groups, **sliding)
        return View.of(y).apply(b, aten.view.default, shape)
    height, width = (1, shape[2]) if flat else shape[2:]
    y = lowering.call(
        convolution.conv_grad_input, *operands, groups=groups, height=height, width=width, **sliding
    )
    if bias is not None:
        y = b.add(y, b.reshape(bias.elements(b), (shape[1], 1, 1)))
    return View.of(y).apply(b, aten.view.default, shape)


@lowers(aten.convolution_backward.default)
def convolve_grad(
    lowering: Lowering,
    _: torch.fx.Node,
    g: View,
    x: View,
    w: View,
    __: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    ___: Sequence[int],
    groups: int,
    wanted: Mask,
) -> tuple[View | None, View | None, View | None]:
    """The gradients of input, weight and bias; None for those that are not wanted."""
    b = lowering.builder
    flat, planes, kernels = _planes(lowering, x, w)
    _flat, gradient, _kernels = _planes(lowering, g, w)
    sliding = _sliding(flat, kernels, stride, padding, dilation)
    values = gradient.elements(b), planes.elements(b), kernels.elements(b)
    at_x = at_w = at_bias = None
    if wanted[0] and transposed:
        bits = _bits(lowering, Role.CONVOLUTION_INPUT_GRADIENT)
        whole = View.of(
            lowering.call(convolution.conv, values[0], values[2], groups=groups, **bits, **sliding)
        )
        # An output padding of at least the stride makes room for more windows than x has elements.
        at_x = whole
        for axis in (2, 3):
            if whole.shape[axis] > planes.shape[axis]:
                at_x = at_x.apply(b, aten.slice.Tensor, axis, 0, planes.shape[axis])
    elif wanted[0]:
        height, width = planes.shape[2:]
        sizes = {"groups": groups, "height": height, "width": width}
        sizes |= _bits(lowering, Role.CONVOLUTION_INPUT_GRADIENT)
        at_x = View.of(lowering.call(convolution.conv_grad_input, values[0], values[2], **sizes, **sliding))
    if wanted[1]:
        # The input of a transposed convolution has the role of a plain convolution's output.
        pair = (values[1], values[0]) if transposed else (values[0], values[1])
        flags = {"groups": groups, "gradient_in_windows": transposed}
        flags |= _bits(lowering, Role.CONVOLUTION_WEIGHT_GRADIENT)
        at_w = View.of(lowering.call(convolution.conv_grad_weight, *pair, **flags, **sliding))
    if wanted[2]:
        rows = gradient.apply(b, aten.permute.default, (1, 0, 2, 3)).apply(
            b, aten.view.default, (gradient.shape[1], -1)
        )
        at_bias = View.of(lowering.call(sums.sum_rows, rows.elements(b)))
    return (
        at_x and at_x.apply(b, aten.view.default, x.shape),
        at_w and at_w.apply(b, aten.view.default, w.shape),
        at_bias,
    )


def _bits(lowering: Lowering, role: Role) -> dict[str, int]:
    """The attributes px and py of a role."""
    px, py = lowering.roles.table[role]
    return {"px": px, "py": py}


def _planes(lowering: Lowering, x: View, w: View) -> tuple[bool, View, View]:
    """Three results: whether the convolution has only one spatial axis, then x, then w. Both tensors are
    returned with two spatial axes. Raises `Unsupported` unless w has one or two spatial axes.
    """
    if len(w.shape) == 4:
        return False, x, w
    if len(w.shape) != 3:
        raise Unsupported(f"over {len(w.shape) - 2} axes", "use convolutions over one or two axes")
    b = lowering.builder
    return True, x.apply(b, aten.unsqueeze.default, 2), w.apply(b, aten.unsqueeze.default, 2)


def _sliding(
    flat: bool, kernels: View, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int]
) -> dict[str, int]:
    """The attributes of the windows. If the convolution is `flat`, with one spatial axis, the windows' height
    is 1. Otherwise, a setting with one number applies to both axes.
    """
    steps, around, apart = (
        (beside, *given) if flat else (*given, *given)[:2]
        for given, beside in ((stride, 1), (padding, 0), (dilation, 1))
    )
    return Sliding(*kernels.shape[2:], *steps, *around, *apart).attributes()
