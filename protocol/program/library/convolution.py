"""Convolutions over two axes, exact: arithmetic.md section 4. One axis is two, one of size 1.

| function | operands | result | bits | groups with one exponent |
|---|---|---|---|---|
| `conv` | x [N, C, H, W], w [O, C/G, KH, KW], bias [O] or none | [N, O, OH, OW] | 13 x 13 | sample of x, row of w |
| `conv_grad_input` | g [N, O, OH, OW], w | [N, C, H, W] | 13 x 13 | sample of g, row of w |
| `conv_grad_weight` | g, x | [O, C/G, KH, KW] | g 20, x 13 | channel of g, channel of x |

A sample (forward, input gradient) or a channel (weight gradient) is a superset of every row along the contracted axis:
each element is quantised once instead of once per window that sees it, and the windows are of integers. A row of w is
one output channel forward, one input channel backward. So a NaN in a sample makes the sample's whole result NaN.

A transposed convolution is `conv_grad_input` forward and `conv` backward; its weight gradient is `conv_grad_weight`
with the gradient in the windows, whose bits `gradient_in_windows` swaps.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from protocol.numerics.contract import contract
from protocol.numerics.elementwise import add
from protocol.numerics.rows import exponent, round_exact, row_scale, whole_in_row
from protocol.program.builder import Builder, Value
from protocol.program.library.function import define
from protocol.program.library.windows import Sliding, padded, padded_tensor, spread, window_strides

FORWARD_BITS = 13
GRADIENT_BITS = 20


def _conv(x: Tensor, w: Tensor, bias: Tensor | None = None, *, groups: int, **sliding: int) -> Tensor:
    s = Sliding(**sliding)
    n, c = x.shape[:2]
    count = rows, columns = s.count(x.shape[2], x.shape[3])
    whole = padded_tensor(x, s, count, 0.0)
    t = window_strides(tuple(whole.shape), s)
    shape = (n, groups, c // groups, s.kernel_y, s.kernel_x, rows, columns)
    strides = (t["n"], t["c"] * (c // groups), t["c"], t["ky"], t["kx"], t["y"], t["x"])
    seen = whole.as_strided(shape, strides).reshape(n, groups, -1, rows * columns)
    weights = w.reshape(groups, -1, seen.shape[2])
    e = exponent(x.reshape(n, -1)).reshape(n, 1, 1, 1)
    y = contract(weights, seen.mT, FORWARD_BITS, FORWARD_BITS, ey=e).reshape(n, -1, rows, columns)
    return y if bias is None else add(y, bias.reshape(-1, 1, 1))


@define("conv", kernel=_conv)
def conv(b: Builder, x: Value, w: Value, bias: Value | None = None, *, groups: int, **sliding: int) -> Value:
    """Cross-correlation, as torch has it: y[o] = bias[o] + sum over c, ky, kx of w[o, c, ky, kx] x[c, …]."""
    s = Sliding(**sliding)
    n, c, height, width = x.shape
    outputs = w.shape[0]
    count = rows, columns = s.count(height, width)
    e = b.exponent(b.pad_rows(b.reshape(x, (n, c * height * width)), 0.0))
    seen = _seen(b, b.quantise(x, b.reshape(e, (n, 1, 1, 1)), FORWARD_BITS), s, count, groups)
    ew, weights = _rows(b, b.reshape(w, (outputs, w.type.elements // outputs)), groups, FORWARD_BITS)
    product = b.reshape(b.dot(weights, seen), (outputs, n, rows, columns))
    e, ew = b.reshape(e, (n, 1, 1)), b.reshape(ew, (outputs, 1, 1, 1))
    y = b.transpose(b.round_scaled(product, ew, e, p=2 * FORWARD_BITS), 0, 1)
    return y if bias is None else b.add(y, b.reshape(bias, (outputs, 1, 1)))


def _conv_grad_input(g: Tensor, w: Tensor, *, groups: int, height: int, width: int, **sliding: int) -> Tensor:
    s = Sliding(**sliding)
    n, outputs = g.shape[:2]
    e = exponent(g.reshape(n, -1))
    rows = w.reshape(groups, outputs // groups, w.shape[1], -1)
    turned = rows.transpose(1, 2).reshape(groups * w.shape[1], -1)  # [C, O/G KH KW]
    ew = exponent(turned)
    by_channel = ew.reshape(groups, 1, w.shape[1], 1)
    whole_w = whole_in_row(rows, by_channel, FORWARD_BITS).double().reshape(groups, outputs // groups, -1)
    whole_g = whole_in_row(g, e.reshape(n, 1, 1, 1), FORWARD_BITS).double()
    # Integers below 2^53 in every order: 26 bits and O/G KH KW terms.
    columns = (whole_w.mT @ whole_g.reshape(n, groups, outputs // groups, -1)).reshape(n, -1, g[0, 0].numel())
    total = F.fold(
        columns,
        (height, width),
        (s.kernel_y, s.kernel_x),
        dilation=(s.dilation_y, s.dilation_x),
        padding=(s.padding_y, s.padding_x),
        stride=(s.stride_y, s.stride_x),
    )
    scales = row_scale(e, FORWARD_BITS).reshape(n, 1, 1, 1), row_scale(ew, FORWARD_BITS).reshape(-1, 1, 1)
    return round_exact(total, *scales)


@define("conv_grad_input", kernel=_conv_grad_input)
def conv_grad_input(
    b: Builder, g: Value, w: Value, *, groups: int, height: int, width: int, **sliding: int
) -> Value:
    """The gradient at x [N, C, height, width]: the gradient spread by the stride, windows of it, w turned round."""
    s = Sliding(**sliding)
    n, outputs, rows, columns = g.shape
    e = b.exponent(b.pad_rows(b.reshape(g, (n, outputs * rows * columns)), 0.0))
    quantised = b.quantise(g, b.reshape(e, (n, 1, 1, 1)), FORWARD_BITS)
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
    ew, weights = _rows(b, b.reshape(turned, (groups * inputs, each * kernel)), groups, FORWARD_BITS)
    product = b.reshape(b.dot(weights, seen), (groups * inputs, n, height, width))
    e, ew = b.reshape(e, (n, 1, 1)), b.reshape(ew, (groups * inputs, 1, 1, 1))
    return b.transpose(b.round_scaled(product, ew, e, p=2 * FORWARD_BITS), 0, 1)


def _conv_grad_weight(
    g: Tensor, x: Tensor, *, groups: int, gradient_in_windows: bool, **sliding: int
) -> Tensor:
    s = Sliding(**sliding)
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
    product = contract(by_channel, seen, *_bits(gradient_in_windows), ey=every)
    return product.reshape(outputs, c // groups, s.kernel_y, s.kernel_x)


@define("conv_grad_weight", kernel=_conv_grad_weight)
def conv_grad_weight(
    b: Builder, g: Value, x: Value, *, groups: int, gradient_in_windows: bool, **sliding: int
) -> Value:
    """The gradient at w: g [N, O, OH, OW] times the windows of x, contracted over samples and positions."""
    s = Sliding(**sliding)
    n, outputs, rows, columns = g.shape
    c, height, width = x.shape[1:]
    bits_g, bits_x = _bits(gradient_in_windows)
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


def _bits(gradient_in_windows: bool) -> tuple[int, int]:
    return (FORWARD_BITS, GRADIENT_BITS) if gradient_in_windows else (GRADIENT_BITS, FORWARD_BITS)


def _rows(b: Builder, rows: Value, groups: int, p: int) -> tuple[Value, Value]:
    """Exponents [R, 1] and integers [groups, R/groups, aligned K] of f32 [R, K]."""
    rows = b.pad_rows(rows, 0.0)
    e = b.exponent(rows)
    count, length = rows.shape
    return e, b.reshape(b.quantise(rows, e, p), (groups, count // groups, length))


def _seen(b: Builder, x: Value, s: Sliding, count: tuple[int, int], groups: int) -> Value:
    """i32 [N, C, H, W] to its windows [groups, N OH OW, aligned C/G KH KW]."""
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
