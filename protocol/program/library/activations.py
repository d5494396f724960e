"""`gelu` and `silu` with their gradients: torch's formulas over the elementary functions of arithmetic.md section 6.

| function | formula |
|---|---|
| `gelu` | 0.5 x (1 + erf(x / sqrt 2)) |
| `gelu`, `tanh=True` | 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) |
| `silu` | x sigmoid(x) |

Every product and sum is rounded, in the order in which the code below has it; constants are rounded to f32.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from protocol.numerics.elementary_torch import erf_f32, exp_f32, sigmoid_f32, tanh_f32
from protocol.numerics.types import DType, canonical
from protocol.program.builder import Builder, Value
from protocol.program.library.blocks import by_element
from protocol.program.library.elementary import erf, exp, sigmoid
from protocol.program.library.elementary import tanh as hyperbolic
from protocol.program.library.function import define

SQRT_HALF = math.sqrt(0.5)
NORMAL_DENSITY = 1 / math.sqrt(2 * math.pi)
"""The standard normal density at 0."""
TANH_SCALE, TANH_CUBIC = math.sqrt(2 / math.pi), 0.044715


def _gelu(x: Tensor, *, tanh: bool) -> Tensor:
    return by_element(_gelu_by_tanh if tanh else _gelu_by_erf, x)


def _gelu_by_erf(x: Tensor) -> Tensor:
    return canonical((x * 0.5) * (erf_f32(x * _f32(x, SQRT_HALF)) + 1.0))


def _gelu_by_tanh(x: Tensor) -> Tensor:
    return canonical((x * 0.5) * (tanh_f32(_inner(x)) + 1.0))


def _inner(x: Tensor) -> Tensor:
    return (x + ((x * x) * x) * _f32(x, TANH_CUBIC)) * _f32(x, TANH_SCALE)


@define("gelu", kernel=_gelu)
def gelu(b: Builder, x: Value, *, tanh: bool) -> Value:
    """f32 of any shape to the same."""
    inner = _inner_value(b, x) if tanh else b.mul(x, _constant(b, SQRT_HALF))
    curve = (hyperbolic if tanh else erf).call(b, inner)
    return b.mul(b.mul(x, _constant(b, 0.5)), b.add(curve, _constant(b, 1.0)))


def _inner_value(b: Builder, x: Value) -> Value:
    cube = b.mul(b.mul(x, x), x)
    return b.mul(b.add(x, b.mul(cube, _constant(b, TANH_CUBIC))), _constant(b, TANH_SCALE))


def _gelu_grad(g: Tensor, x: Tensor, *, tanh: bool) -> Tensor:
    return by_element(_gelu_grad_by_tanh if tanh else _gelu_grad_by_erf, g, x)


def _gelu_grad_by_erf(g: Tensor, x: Tensor) -> Tensor:
    below = (erf_f32(x * _f32(x, SQRT_HALF)) + 1.0) * 0.5
    density = exp_f32((x * x) * -0.5) * _f32(x, NORMAL_DENSITY)
    return canonical(g * (below + x * density))


def _gelu_grad_by_tanh(g: Tensor, x: Tensor) -> Tensor:
    curve = tanh_f32(_inner(x))
    slope = ((x * x) * _f32(x, 3 * TANH_CUBIC) + 1.0) * _f32(x, TANH_SCALE)
    along = ((x * 0.5) * (1.0 - curve * curve)) * slope
    return canonical(g * ((curve + 1.0) * 0.5 + along))


@define("gelu_grad", kernel=_gelu_grad)
def gelu_grad(b: Builder, g: Value, x: Value, *, tanh: bool) -> Value:
    """Two f32 of one shape to the gradient of x: g gelu'(x)."""
    one, half, square = _constant(b, 1.0), _constant(b, 0.5), b.mul(x, x)
    if not tanh:
        below = b.mul(b.add(erf.call(b, b.mul(x, _constant(b, SQRT_HALF))), one), half)
        density = b.mul(exp.call(b, b.mul(square, _constant(b, -0.5))), _constant(b, NORMAL_DENSITY))
        return b.mul(g, b.add(below, b.mul(x, density)))
    curve = hyperbolic.call(b, _inner_value(b, x))
    slope = b.mul(b.add(b.mul(square, _constant(b, 3 * TANH_CUBIC)), one), _constant(b, TANH_SCALE))
    along = b.mul(b.mul(b.mul(x, half), b.sub(one, b.mul(curve, curve))), slope)
    return b.mul(g, b.add(b.mul(b.add(curve, one), half), along))


def _silu(x: Tensor) -> Tensor:
    return by_element(lambda x: canonical(x * sigmoid_f32(x)), x)


@define("silu", kernel=_silu)
def silu(b: Builder, x: Value) -> Value:
    """f32 of any shape to the same: x sigmoid(x)."""
    return b.mul(x, sigmoid.call(b, x))


def _silu_grad(g: Tensor, x: Tensor) -> Tensor:
    def block(g: Tensor, x: Tensor) -> Tensor:
        s = sigmoid_f32(x)
        return canonical(g * (s * (x * (1.0 - s) + 1.0)))

    return by_element(block, g, x)


@define("silu_grad", kernel=_silu_grad)
def silu_grad(b: Builder, g: Value, x: Value) -> Value:
    """Two f32 of one shape to the gradient of x: g s (1 + x (1 - s)), s = sigmoid(x)."""
    s, one = sigmoid.call(b, x), _constant(b, 1.0)
    return b.mul(g, b.mul(s, b.add(b.mul(x, b.sub(one, s)), one)))


def _constant(b: Builder, value: float) -> Value:
    return b.constant(DType.F32, (), value)


def _f32(x: Tensor, value: float) -> Tensor:
    return torch.tensor(value, dtype=torch.float32, device=x.device)
