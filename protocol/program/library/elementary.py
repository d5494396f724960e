"""Elementary functions as programs: the operation lists of `protocol.numerics.elementary`, recorded by the
builder.

The lists work on any `Operations` namespace, and `Builder` is one.
"""

from __future__ import annotations

from protocol.numerics import elementary, elementary_torch
from protocol.program.builder import Builder, Value
from protocol.program.library.function import define


@define("exp", kernel=elementary_torch.exp_f32)
def exp(b: Builder, x: Value) -> Value:
    """e^x of an f32 tensor of any shape: arithmetic.md section 6."""
    return elementary.exp(b, x)


@define("log", kernel=elementary_torch.log_f32)
def log(b: Builder, x: Value) -> Value:
    """Natural logarithm of an f32 tensor of any shape: arithmetic.md section 6."""
    return elementary.log(b, x)


@define("tanh", kernel=elementary_torch.tanh_f32)
def tanh(b: Builder, x: Value) -> Value:
    """Hyperbolic tangent of an f32 tensor of any shape: arithmetic.md section 6."""
    return elementary.tanh(b, x)


@define("sigmoid", kernel=elementary_torch.sigmoid_f32)
def sigmoid(b: Builder, x: Value) -> Value:
    """1 / (1 + e^-x) of an f32 tensor of any shape: arithmetic.md section 6."""
    return elementary.sigmoid(b, x)


@define("erf", kernel=elementary_torch.erf_f32)
def erf(b: Builder, x: Value) -> Value:
    """Error function of an f32 tensor of any shape: arithmetic.md section 6."""
    return elementary.erf(b, x)


@define("sin", kernel=elementary_torch.sin_f32)
def sin(b: Builder, x: Value) -> Value:
    """Sine of an f32 tensor of any shape for |x| <= 2^15, otherwise NaN: arithmetic.md section 6."""
    return elementary.sin(b, x)


@define("cos", kernel=elementary_torch.cos_f32)
def cos(b: Builder, x: Value) -> Value:
    """Cosine of an f32 tensor of any shape for |x| <= 2^15, otherwise NaN: arithmetic.md section 6."""
    return elementary.cos(b, x)


@define("rsqrt", kernel=elementary_torch.rsqrt_f32)
def rsqrt(b: Builder, x: Value) -> Value:
    """1 / sqrt(x) of an f32 tensor of any shape: arithmetic.md section 6."""
    return elementary.rsqrt(b, x)
