"""Exact convolutions over two axes: arithmetic.md section 4. For a single axis, the other has size 1.

| function | operands | result | operands with `px`, `py` bits | groups with one exponent |
|---|---|---|---|---|
| `conv` | x [N, C, H, W], w [O, C/G, KH, KW], bias [O] or none | [N, O, OH, OW] | x, w | sample of x, row of w |
| `conv_grad_input` | g [N, O, OH, OW], w | [N, C, H, W] | g, w | sample of g, row of w |
| `conv_grad_weight` | g, x | [O, C/G, KH, KW] | gradient, the other | channel of g, channel of x |

`px` and `py` are the numbers of bits to which the two operands are quantised; the column says which operand
has `px` bits, then which has `py`. Each is 13 or 20; `capture.analysis.roles` chooses them by the table of
roles in arithmetic.md section 4. Bundles that follow version 1 of this table do not state the bits: there
they are 13 x 13, or 20 x 13 for a weight gradient.

The exponent groups of x and g are whole samples (forward, input gradient) or whole channels (weight
gradient). So each element is quantised once, not once per window, and windows consist of integers. For the
same reason, a NaN in a sample makes the sample's whole result NaN. A row of w is one output channel forward,
and one input channel for the input gradient.

A transposed convolution uses `conv_grad_input` forward, and `conv` for the gradient of its input. Its weight
gradient uses `conv_grad_weight` with the two operands exchanged: g is the input of the transposed
convolution, and x, from which the windows are taken, is the gradient of its result. The flag
`gradient_in_windows` marks this case. In `conv_grad_weight`, `px` is always the number of bits of the
gradient, which is g without the flag and x with it. `py` is that of the other operand.
"""

from __future__ import annotations

from torch import Tensor

from protocol.numerics.contract import contract
from protocol.numerics.kernels.convolution_dispatch import convolution_for
from protocol.numerics.kernels.convolution_shape_classes import AT_INPUT, AT_WEIGHT, FORWARD, convolution_call
from protocol.numerics.operations import add
from protocol.numerics.rows import exponent
from protocol.program.builder import Builder, Value
from protocol.program.errors import RuleError
from protocol.program.library.function import define
from protocol.program.library.windows import (
    Sliding,
    padded,
    padded_tensor,
    spread,
    spread_tensor,
    window_strides,
)


def _conv(
    x: Tensor,
    w: Tensor,
    bias: Tensor | None = None,
    *,
    groups: int,
    px: int = 13,
    py: int = 13,
    **sliding: int,
) -> Tensor:
    s = Sliding(**sliding)
    count = s.count(x.shape[2], x.shape[3])
    call = convolution_call(
        FORWARD, x.shape, (len(x), len(w), *count), groups, sliding, (py, px), bias=bias is not None
    )
    compiled = convolution_for(x, call)
    if compiled is not None:
        return compiled.run(call, w, x, bias)
    weights = w.reshape(groups, w.shape[0] // groups, -1)
    e = exponent(x.reshape(len(x), -1))
    y = _windows_product(weights, padded_tensor(x, s, count, 0.0), e, s, count, (py, px))
    return y if bias is None else add(y, bias.reshape(-1, 1, 1))


@define("conv", kernel=_conv)
def conv(
    b: Builder,
    x: Value,
    w: Value,
    bias: Value | None = None,
    *,
    groups: int,
    px: int = 13,
    py: int = 13,
    **sliding: int,
) -> Value:
    """Cross-correlation, as in torch: y[o] = bias[o] + sum over c, ky, kx of w[o, c, ky, kx] x[c, …]."""
    s = Sliding(**sliding)
    n, c, height, width = x.shape
    outputs = w.shape[0]
    _require_kernel(w, (outputs, c // groups, s.kernel_y, s.kernel_x), c, groups)
    count = rows, columns = s.count(height, width)
    e = b.exponent(b.pad_rows(b.reshape(x, (n, c * height * width)), 0.0))
    seen = _seen(b, b.quantise(x, b.reshape(e, (n, 1, 1, 1)), px), s, count, groups)
    ew, weights = _rows(b, b.reshape(w, (outputs, w.type.elements // outputs)), groups, py)
    product = b.reshape(b.dot(weights, seen), (outputs, n, rows, columns))
    e, ew = b.reshape(e, (n, 1, 1)), b.reshape(ew, (outputs, 1, 1, 1))
    y = b.transpose(b.round_scaled(product, ew, e, p=px + py), 0, 1)
    return y if bias is None else b.add(y, b.reshape(bias, (outputs, 1, 1)))


def _conv_grad_input(
    g: Tensor,
    w: Tensor,
    *,
    groups: int,
    height: int,
    width: int,
    px: int = 13,
    py: int = 13,
    **sliding: int,
) -> Tensor:
    s = Sliding(**sliding)
    x_shape = (len(g), groups * w.shape[1], height, width)
    call = convolution_call(AT_INPUT, x_shape, g.shape, groups, sliding, (py, px))
    compiled = convolution_for(g, call)
    if compiled is not None:
        return compiled.run(call, w, g)
    rows = w.flip(2, 3).reshape(groups, w.shape[0] // groups, w.shape[1], -1)
    turned = rows.transpose(1, 2).reshape(groups, w.shape[1], -1)  # [G, C/G, O/G KH KW]
    e = exponent(g.reshape(len(g), -1))
    apart = spread_tensor(g, s, height, width, 0.0)
    return _windows_product(turned, apart, e, s.unit(), (height, width), (py, px))


@define("conv_grad_input", kernel=_conv_grad_input)
def conv_grad_input(
    b: Builder,
    g: Value,
    w: Value,
    *,
    groups: int,
    height: int,
    width: int,
    px: int = 13,
    py: int = 13,
    **sliding: int,
) -> Value:
    """The gradient of x [N, C, height, width]: windows of the spread gradient times the flipped w."""
    s = Sliding(**sliding)
    n, outputs, rows, columns = g.shape
    _require_kernel(w, (outputs, w.shape[1], s.kernel_y, s.kernel_x), outputs, groups)
    e = b.exponent(b.pad_rows(b.reshape(g, (n, outputs * rows * columns)), 0.0))
    quantised = b.quantise(g, b.reshape(e, (n, 1, 1, 1)), px)
    apart = spread(b, quantised, s, height, width, 0)
    seen = _seen(b, apart, s.unit(), (height, width), groups)

    inputs, kernel = w.shape[1], s.kernel_y * s.kernel_x
    each = outputs // groups
    turned = b.strided(
        w,
        (groups, inputs, each, kernel),
        (each * inputs * kernel, kernel, inputs * kernel, -1),
        kernel - 1,
    )
    ew, weights = _rows(b, b.reshape(turned, (groups * inputs, each * kernel)), groups, py)
    product = b.reshape(b.dot(weights, seen), (groups * inputs, n, height, width))
    e, ew = b.reshape(e, (n, 1, 1)), b.reshape(ew, (groups * inputs, 1, 1, 1))
    return b.transpose(b.round_scaled(product, ew, e, p=px + py), 0, 1)


def _windows_product(
    weights: Tensor, whole: Tensor, e: Tensor, s: Sliding, count: tuple[int, int], bits: tuple[int, int]
) -> Tensor:
    """The product of weights [G, R, K] and the windows of a padded tensor [N, C, H, W]. The result is [N, G
    R, *count].

    `e` [N, 1] holds the exponents of the samples.
    """
    n, c = whole.shape[:2]
    groups = weights.shape[0]
    t = window_strides(tuple(whole.shape), s)
    shape = (n, groups, c // groups, s.kernel_y, s.kernel_x, *count)
    strides = (t["n"], t["c"] * (c // groups), t["c"], t["ky"], t["kx"], t["y"], t["x"])
    seen = whole.as_strided(shape, strides).reshape(n, groups, weights.shape[2], -1)
    product = contract(weights, seen.mT, *bits, ey=e.reshape(n, 1, 1, 1))
    return product.reshape(n, -1, *count)


def _conv_grad_weight(
    g: Tensor,
    x: Tensor,
    *,
    groups: int,
    gradient_in_windows: bool,
    px: int = 20,
    py: int = 13,
    **sliding: int,
) -> Tensor:
    s = Sliding(**sliding)
    bits = (py, px) if gradient_in_windows else (px, py)
    call = convolution_call(AT_WEIGHT, x.shape, g.shape, groups, sliding, bits)
    compiled = convolution_for(x, call)
    if compiled is not None:
        return compiled.run(call, g, x)
    n, outputs, rows, columns = g.shape
    c = x.shape[1]
    whole = padded_tensor(x, s, (rows, columns), 0.0)
    t = window_strides(tuple(whole.shape), s)
    shape = (c, s.kernel_y, s.kernel_x, n, rows, columns)
    strides = (t["c"], t["ky"], t["kx"], t["n"], t["y"], t["x"])
    seen = whole.as_strided(shape, strides).reshape(groups, -1, n * rows * columns)
    e = exponent(x.transpose(0, 1).reshape(c, -1))
    every = e.reshape(c, 1).expand(c, s.kernel_y * s.kernel_x).reshape(groups, -1, 1)
    by_channel = g.transpose(0, 1).reshape(groups, outputs // groups, -1)
    product = contract(by_channel, seen, *bits, ey=every)
    return product.reshape(outputs, c // groups, s.kernel_y, s.kernel_x)


@define("conv_grad_weight", kernel=_conv_grad_weight)
def conv_grad_weight(
    b: Builder,
    g: Value,
    x: Value,
    *,
    groups: int,
    gradient_in_windows: bool,
    px: int = 20,
    py: int = 13,
    **sliding: int,
) -> Value:
    """The gradient of w: g [N, O, OH, OW] times the windows of x, contracted over samples and positions."""
    s = Sliding(**sliding)
    n, outputs, rows, columns = g.shape
    c, height, width = x.shape[1:]
    bits_g, bits_x = (py, px) if gradient_in_windows else (px, py)
    flat = b.reshape(b.transpose(g, 0, 1), (outputs, n * rows * columns))
    eg, gradients = _rows(b, flat, groups, bits_g)

    turned = b.transpose(x, 0, 1)
    e = b.exponent(b.pad_rows(b.reshape(turned, (c, n * height * width)), 0.0))
    whole = padded(
        b, b.quantise(turned, b.reshape(e, (c, 1, 1, 1)), bits_x), s, (rows, columns), 0
    )  # [C, N, …]
    t = window_strides(whole.shape, s)
    seen = b.strided(
        whole,
        (c, s.kernel_y, s.kernel_x, n, rows, columns),
        (t["n"], t["ky"], t["kx"], t["c"], t["y"], t["x"]),
    )
    kernel = s.kernel_y * s.kernel_x
    seen = b.pad_rows(b.reshape(seen, (groups, c // groups * kernel, n * rows * columns)), 0)
    product = b.reshape(b.dot(gradients, seen), (groups, outputs // groups, c // groups, kernel))
    e, eg = b.reshape(e, (groups, 1, c // groups, 1)), b.reshape(eg, (groups, outputs // groups, 1, 1))
    result = b.round_scaled(product, eg, e, p=bits_g + bits_x)
    return b.reshape(result, (outputs, c // groups, s.kernel_y, s.kernel_x))


def _require_kernel(w: Value, shape: tuple[int, ...], channels: int, groups: int) -> None:
    """Raise unless w has the expected shape. Padding would hide wrong lengths, as 18 and 27 are both padded to 32."""
    if w.shape != shape or channels % groups or w.shape[0] % groups:
        expected = f"a kernel of shape {shape} for {channels} channels in {groups} groups"
        raise RuleError(expected, str(w.type), operation="convolution")


def _rows(b: Builder, rows: Value, groups: int, p: int) -> tuple[Value, Value]:
    """The exponents [R, 1] and the quantised integers [groups, R/groups, aligned K] of `rows`, f32 [R, K]."""
    rows = b.pad_rows(rows, 0.0)
    e = b.exponent(rows)
    count, length = rows.shape
    return e, b.reshape(b.quantise(rows, e, p), (groups, count // groups, length))


def _seen(b: Builder, x: Value, s: Sliding, count: tuple[int, int], groups: int) -> Value:
    """The windows [groups, N OH OW, aligned C/G KH KW] of i32 [N, C, H, W]."""
    whole = padded(b, x, s, count, 0)
    n, c = x.shape[:2]
    t = window_strides(whole.shape, s)
    each = c // groups
    seen = b.strided(
        whole,
        (groups, n, *count, each, s.kernel_y, s.kernel_x),
        (t["c"] * each, t["n"], t["y"], t["x"], t["c"], t["ky"], t["kx"]),
    )
    length = each * s.kernel_y * s.kernel_x
    return b.pad_rows(b.reshape(seen, (groups, n * count[0] * count[1], length)), 0)
