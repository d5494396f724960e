"""`exp` and `log` as programs: the operation lists of `protocol.numerics.elementary`, recorded by the builder.

The lists are written once against a namespace of operations, and `Builder` is such a namespace.
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
