"""Elementary functions on torch tensors: the lists of `elementary`.

If a list has a compiled function that may be used for the tensor, that function is called. Otherwise
`elementary_blocks` evaluates the list on the CPU, and torch evaluates it operation by operation on other
devices. The bits are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from protocol.numerics import elementary, elementary_blocks
from protocol.numerics.kernels.fused import Map
from protocol.numerics.kernels.fused_dispatch import fused_for
from protocol.numerics.torch_operations import TorchOperations
from protocol.numerics.types import canonical

COMPILED = {
    getattr(elementary, name): Map[name.upper()] for name in elementary.__all__ if name != "Operations"
}
"""Each list of `elementary`, mapped to the number of its compiled function."""


def exp_f32(x: Tensor) -> Tensor:
    """`exp` on an f32 tensor of any shape and device."""
    return evaluate(elementary.exp, x)


def log_f32(x: Tensor) -> Tensor:
    """`log` on an f32 tensor of any shape and device."""
    return evaluate(elementary.log, x)


def tanh_f32(x: Tensor) -> Tensor:
    """`tanh` on an f32 tensor of any shape and device."""
    return evaluate(elementary.tanh, x)


def sigmoid_f32(x: Tensor) -> Tensor:
    """`sigmoid` on an f32 tensor of any shape and device."""
    return evaluate(elementary.sigmoid, x)


def erf_f32(x: Tensor) -> Tensor:
    """`erf` on an f32 tensor of any shape and device."""
    return evaluate(elementary.erf, x)


def sin_f32(x: Tensor) -> Tensor:
    """`sin` on an f32 tensor of any shape and device."""
    return evaluate(elementary.sin, x)


def cos_f32(x: Tensor) -> Tensor:
    """`cos` on an f32 tensor of any shape and device."""
    return evaluate(elementary.cos, x)


def rsqrt_f32(x: Tensor) -> Tensor:
    """`rsqrt` on an f32 tensor of any shape and device."""
    return evaluate(elementary.rsqrt, x)


def evaluate(function: Callable[[Any, Any], Any], x: Tensor, compiled: Map | None = None) -> Tensor:
    """Evaluate an operation list that takes one argument, such as those of `elementary`, on an f32 tensor of
    any shape.

    If the list is not in `elementary` but has a compiled function, `compiled` is the number of that function.
    """
    which, fused = compiled or COMPILED.get(function), fused_for(x)
    if which is not None and fused is not None:
        return fused.map(which, x)
    if x.device.type != "cpu":
        return canonical(function(TorchOperations(x.device), x))
    source = x.detach().contiguous()
    result = torch.empty_like(source)
    elementary_blocks.evaluate(
        function, source.view(-1).numpy(), result.view(-1).numpy(), torch.get_num_threads()
    )
    return result
