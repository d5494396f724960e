"""`gelu` and `silu` with their gradients: torch's formulas over the elementary functions of arithmetic.md
section 6.

| function | formula |
|---|---|
| `gelu` | 0.5 x (1 + erf(x / sqrt 2)) |
| `gelu`, `tanh=True` | 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) |
| `silu` | x sigmoid(x) |

Every product and sum is rounded, in the order of the code below; constants are rounded to f32.

Each formula is written once, as a Python function that takes two namespaces: one of elementary functions and
one of operations. So the formula can be used in two ways. With `CALLS` and a builder, it is the body of a
library function, and its elementary functions are calls in a program. With the lists of
`numerics.elementary`, it is one longer list of operations. A kernel runs compiled code for the formula or, if
no compiled code may be used, evaluates this list.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

from torch import Tensor

from protocol.numerics import elementary as lists
from protocol.numerics.elementary_torch import evaluate
from protocol.numerics.kernels.fused import Map
from protocol.numerics.kernels.fused_dispatch import fused_for
from protocol.program.builder import Builder, Value
from protocol.program.library import elementary
from protocol.program.library.blocks import canonical_in_place
from protocol.program.library.function import define

SQRT_HALF = math.sqrt(0.5)
NORMAL_DENSITY = 1 / math.sqrt(2 * math.pi)
"""1 / sqrt(2 pi), the standard normal density at 0."""
TANH_SCALE, TANH_CUBIC = math.sqrt(2 / math.pi), 0.044715

CALLS = SimpleNamespace(
    exp=elementary.exp.call,
    tanh=elementary.tanh.call,
    erf=elementary.erf.call,
    sigmoid=elementary.sigmoid.call,
)
"""Elementary functions as calls in a program, with the same names as in `lists`."""


def _gelu_by_erf(f: Any, o: Any, x: Any) -> Any:
    curve = f.erf(o, o.mul(x, _f32(o, SQRT_HALF)))
    return o.mul(o.mul(x, _f32(o, 0.5)), o.add(curve, _f32(o, 1.0)))


def _gelu_by_tanh(f: Any, o: Any, x: Any) -> Any:
    curve = f.tanh(o, _inner(o, x))
    return o.mul(o.mul(x, _f32(o, 0.5)), o.add(curve, _f32(o, 1.0)))


def _inner(o: Any, x: Any) -> Any:
    cube = o.mul(o.mul(x, x), x)
    return o.mul(o.add(x, o.mul(cube, _f32(o, TANH_CUBIC))), _f32(o, TANH_SCALE))


def _slope_by_erf(f: Any, o: Any, x: Any) -> Any:
    """The derivative of GELU: the normal distribution function at x, plus x times the density at x."""
    below = o.mul(o.add(f.erf(o, o.mul(x, _f32(o, SQRT_HALF))), _f32(o, 1.0)), _f32(o, 0.5))
    density = o.mul(f.exp(o, o.mul(o.mul(x, x), _f32(o, -0.5))), _f32(o, NORMAL_DENSITY))
    return o.add(below, o.mul(x, density))


def _slope_by_tanh(f: Any, o: Any, x: Any) -> Any:
    one, half = _f32(o, 1.0), _f32(o, 0.5)
    curve = f.tanh(o, _inner(o, x))
    slope = o.mul(o.add(o.mul(o.mul(x, x), _f32(o, 3 * TANH_CUBIC)), one), _f32(o, TANH_SCALE))
    along = o.mul(o.mul(o.mul(x, half), o.sub(one, o.mul(curve, curve))), slope)
    return o.add(o.mul(o.add(curve, one), half), along)


def _silu_formula(f: Any, o: Any, x: Any) -> Any:
    return o.mul(x, f.sigmoid(o, x))


def _silu_slope(f: Any, o: Any, x: Any) -> Any:
    """The derivative of SiLU: s (1 + x (1 - s)) with s = sigmoid(x)."""
    s, one = f.sigmoid(o, x), _f32(o, 1.0)
    return o.mul(s, o.add(o.mul(x, o.sub(one, s)), one))


def _f32(o: Any, value: float) -> Any:
    return o.f32(int.from_bytes(struct.pack("<f", value), "little"))


GELU = {False: partial(_gelu_by_erf, lists), True: partial(_gelu_by_tanh, lists)}
GELU_SLOPE = {False: partial(_slope_by_erf, lists), True: partial(_slope_by_tanh, lists)}
SILU, SILU_SLOPE = partial(_silu_formula, lists), partial(_silu_slope, lists)
"""The formulas of SiLU and its derivative, each as a single list. Recordings are cached by function, so each
partial function is created only once.
"""
COMPILED = {False: Map.GELU_ERF, True: Map.GELU_TANH}
COMPILED_SLOPE = {False: Map.GELU_ERF_GRAD, True: Map.GELU_TANH_GRAD}
"""For each value of `tanh`, the compiled gradient of GELU (native/fused_body.h)."""


def _times_slope(g: Tensor, x: Tensor, slope: Callable[[Any, Any], Any], compiled: Map) -> Tensor:
    fused = fused_for(x)
    if fused is not None:
        return fused.map(compiled, x, g)
    return canonical_in_place(evaluate(slope, x).mul_(g))


@define("gelu", kernel=lambda x, *, tanh: evaluate(GELU[tanh], x, COMPILED[tanh]))
def gelu(b: Builder, x: Value, *, tanh: bool) -> Value:
    """GELU of f32 of any shape."""
    result: Value = (_gelu_by_tanh if tanh else _gelu_by_erf)(CALLS, b, x)
    return result


@define("gelu_grad", kernel=lambda g, x, *, tanh: _times_slope(g, x, GELU_SLOPE[tanh], COMPILED_SLOPE[tanh]))
def gelu_grad(b: Builder, g: Value, x: Value, *, tanh: bool) -> Value:
    """The gradient of x: g gelu'(x), for f32 g and x of the same shape."""
    return b.mul(g, (_slope_by_tanh if tanh else _slope_by_erf)(CALLS, b, x))


@define("silu", kernel=lambda x: evaluate(SILU, x, Map.SILU))
def silu(b: Builder, x: Value) -> Value:
    """SiLU of f32 of any shape: x sigmoid(x)."""
    result: Value = _silu_formula(CALLS, b, x)
    return result


@define("silu_grad", kernel=lambda g, x: _times_slope(g, x, SILU_SLOPE, Map.SILU_GRAD))
def silu_grad(b: Builder, g: Value, x: Value) -> Value:
    """The gradient of x: g s (1 + x (1 - s)) with s = sigmoid(x), for f32 g and x of the same shape."""
    return b.mul(g, _silu_slope(CALLS, b, x))
