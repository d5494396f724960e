"""Tensors created by the step: one value everywhere, or numbers in sequence. Random tensors are in `random`."""

from __future__ import annotations

from typing import Any

import torch

from protocol.capture.lowering.checks import Unsupported
from protocol.capture.lowering.context import Lowering, Scalar
from protocol.capture.lowering.ops.operands import f32, filled
from protocol.capture.lowering.rules import lowers
from protocol.capture.lowering.views import View
from protocol.numerics.types import DType
from protocol.program.library.rows import count_up

aten = torch.ops.aten


@lowers(aten.ones_like.default, aten.ones.default, aten.new_ones.default)
def ones(lowering: Lowering, node: torch.fx.Node, *_: Any, **__: Any) -> View:
    """Ones; the backward pass starts with a tensor of ones."""
    return filled(lowering, node, 1)


@lowers(aten.zeros_like.default, aten.zeros.default, aten.new_zeros.default)
def zeros(lowering: Lowering, node: torch.fx.Node, *_: Any, **__: Any) -> View:
    """Zeros."""
    return filled(lowering, node, 0)


@lowers(aten.full.default, aten.full_like.default, aten.new_full.default)
def full(lowering: Lowering, node: torch.fx.Node, _: Any, *args: Any, **__: Any) -> View:
    """One value everywhere."""
    return filled(lowering, node, args[-1])


@lowers(aten.scalar_tensor.default)
def scalar(lowering: Lowering, node: torch.fx.Node, value: Scalar, **__: Any) -> View:
    """One value."""
    return filled(lowering, node, value)


@lowers(aten.arange.default, aten.arange.start, aten.arange.start_step)
def arange(lowering: Lowering, node: torch.fx.Node, first: Scalar, *rest: Scalar, **_: Any) -> View:
    """start, start + step, and so on. Each float is counter * step + start, with the product and the sum each
    rounded.
    """
    b = lowering.builder
    start, step = (first if rest else 0), (rest[1] if len(rest) > 1 else 1)
    dtype = lowering.dtype_of(node)
    count = count_up(b, node.meta["val"].shape[0])
    if dtype is DType.F32:
        scaled = b.mul(b.cast(count, DType.F32), f32(lowering, float(step)))
        return View.of(b.add(scaled, f32(lowering, float(start))))
    if dtype is not DType.I32:
        raise Unsupported(f"of {dtype.name.lower()}", "count in int64")
    count = count if step == 1 else b.mul(count, b.i32(int(step)))
    return View.of(count if start == 0 else b.add(count, b.i32(int(start))))
