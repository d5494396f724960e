"""Functions of one element: elementary functions, activations and their derivatives, AdamW.

The formulas are those of native/fused_body.h, and of `activations` and `adam` in `program.library`, operation
by operation.
"""

from __future__ import annotations

import triton
import triton.language as tl

from protocol.numerics.cuda.device.lists import (
    list_cos,
    list_erf,
    list_exp,
    list_log,
    list_rsqrt,
    list_sigmoid,
    list_sin,
    list_tanh,
)
from protocol.numerics.cuda.device.scalar import canonical

SQRT_HALF = tl.constexpr(0.707106769084930419921875)  # sqrt(1/2) as f32, 0x3f3504f3
NORMAL_DENSITY = tl.constexpr(0.3989422917366027832)  # 1 / sqrt(2 pi), 0x3ecc422a
TANH_SCALE = tl.constexpr(0.79788458347320556641)  # sqrt(2 / pi), 0x3f4c422a
TANH_CUBIC = tl.constexpr(0.044714998453855514526)  # 0x3d372713
TANH_CUBIC_3 = tl.constexpr(0.13414500653743743896)  # 0x3e095d4f


@triton.jit
def _inner(x):
    cube = (x * x) * x
    return (x + cube * TANH_CUBIC) * TANH_SCALE


@triton.jit
def _slope_by_erf(x):
    below = (list_erf(x * SQRT_HALF) + 1.0) * 0.5
    density = list_exp((x * x) * -0.5) * NORMAL_DENSITY
    return below + x * density


@triton.jit
def _slope_by_tanh(x):
    curve = list_tanh(_inner(x))
    slope = ((x * x) * TANH_CUBIC_3 + 1.0) * TANH_SCALE
    along = ((x * 0.5) * (1.0 - curve * curve)) * slope
    return (curve + 1.0) * 0.5 + along


@triton.jit
def _silu_slope(x):
    s = list_sigmoid(x)
    return s * (x * (1.0 - s) + 1.0)


@triton.jit
def _mapped(x, WHICH: tl.constexpr):
    """f(x), where f is the function that has the number WHICH in `kernels.fused.Map`."""
    if WHICH == 0:
        y = list_exp(x)
    elif WHICH == 1:
        y = list_log(x)
    elif WHICH == 2:
        y = list_tanh(x)
    elif WHICH == 3:
        y = list_sigmoid(x)
    elif WHICH == 4:
        y = list_erf(x)
    elif WHICH == 5:
        y = list_sin(x)
    elif WHICH == 6:
        y = list_cos(x)
    elif WHICH == 7:
        y = list_rsqrt(x)
    elif WHICH == 8:
        y = (x * 0.5) * (list_erf(x * SQRT_HALF) + 1.0)
    elif WHICH == 9:
        y = (x * 0.5) * (list_tanh(_inner(x)) + 1.0)
    elif WHICH == 10:
        y = x * list_sigmoid(x)
    elif WHICH == 11:
        y = _slope_by_erf(x)
    elif WHICH == 12:
        y = _slope_by_tanh(x)
    else:
        y = _silu_slope(x)
    return y


@triton.jit
def map_elements(g, x, y, count, WHICH: tl.constexpr, GRADIENT: tl.constexpr, BLOCK: tl.constexpr):
    """Write y = f(x), or with GRADIENT y = g * f(x), the product of two elements. f is the function that has
    the number WHICH in `kernels.fused.Map`.
    """
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    there = at < count
    value = _mapped(tl.load(x + at, mask=there, other=0.0), WHICH)
    if GRADIENT:
        value = tl.load(g + at, mask=there, other=0.0) * value
    tl.store(y + at, canonical(value), mask=there)


@triton.jit
def adamw(
    p, g, m, v, p_new, m_new, v_new, size, eps, kept, beta1, rest1, beta2, rest2, count, BLOCK: tl.constexpr
):  # fmt: skip
    """One AdamW update, as in `library.adam.adamw`.

    `size`, `eps` and `kept` are pointers to one number each, so the host reads nothing back.
    """
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    there = at < count
    slope = tl.load(g + at, mask=there, other=0.0)
    mean = beta1 * tl.load(m + at, mask=there, other=0.0) + rest1 * slope
    square = beta2 * tl.load(v + at, mask=there, other=0.0) + rest2 * (slope * slope)
    direction = tl.div_rn(mean, tl.sqrt_rn(square) + tl.load(eps))
    moved = tl.load(kept) * tl.load(p + at, mask=there, other=0.0) - tl.load(size) * direction
    tl.store(p_new + at, canonical(moved), mask=there)
    tl.store(m_new + at, canonical(mean), mask=there)
    tl.store(v_new + at, canonical(square), mask=there)


@triton.jit
def canonical_elements(x, count, BLOCK: tl.constexpr):
    """Canonicalise NaNs in place."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < count, other=0.0)
    tl.store(x + at, canonical(value), mask=(at < count) & (value != value))
