"""The softmax family along any axis, forward and backward. Models apply masks with separate operations."""

from __future__ import annotations

import torch

from protocol.capture.lowering.checks import Unsupported
from protocol.capture.lowering.context import Lowering
from protocol.capture.lowering.ops.operands import require_f32
from protocol.capture.lowering.rules import lowers
from protocol.capture.lowering.views import View
from protocol.program.builder import Value
from protocol.program.library import softmax as library

aten = torch.ops.aten


@lowers(aten._softmax.default)
def softmax(lowering: Lowering, _: torch.fx.Node, x: View, axis: int, half_to_float: bool) -> View:  # noqa: ARG001
    """The softmax; a row in which every element is -inf gives NaN."""
    return _placed(lowering, lowering.call(library.softmax, _rows(lowering, x, axis), safe=False), axis)


@lowers(aten._safe_softmax.default)
def safe_softmax(
    lowering: Lowering, _: torch.fx.Node, x: View, axis: int, dtype: torch.dtype | None = None
) -> View:
    """The softmax; a row in which every element is -inf gives zeros."""
    _require_f32_result(dtype)
    return _placed(lowering, lowering.call(library.softmax, _rows(lowering, x, axis), safe=True), axis)


@lowers(aten._softmax_backward_data.default)
def softmax_grad(
    lowering: Lowering, _: torch.fx.Node, g: View, y: View, axis: int, dtype: torch.dtype
) -> View:
    """The gradient of both softmax functions."""
    _require_f32_result(dtype)
    rows = _rows(lowering, g, axis), _rows(lowering, y, axis)
    return _placed(lowering, lowering.call(library.softmax_grad, *rows), axis)


@lowers(aten._log_softmax.default)
def log_softmax(lowering: Lowering, _: torch.fx.Node, x: View, axis: int, half_to_float: bool) -> View:  # noqa: ARG001
    """The logarithm of the softmax; `half_to_float` has no effect, as operands are f32."""
    return _placed(lowering, lowering.call(library.log_softmax, _rows(lowering, x, axis)), axis)


@lowers(aten._log_softmax_backward_data.default)
def log_softmax_grad(
    lowering: Lowering, _: torch.fx.Node, g: View, y: View, axis: int, dtype: torch.dtype
) -> View:
    """The gradient of `log_softmax`."""
    _require_f32_result(dtype)
    rows = _rows(lowering, g, axis), _rows(lowering, y, axis)
    return _placed(lowering, lowering.call(library.log_softmax_grad, *rows), axis)


def _rows(lowering: Lowering, x: View, axis: int) -> Value:
    """The elements of x, with `axis` moved to the end."""
    b = lowering.builder
    if not x.shape:
        raise Unsupported("of a single number", "its softmax is 1: leave it out")
    return require_f32(x).apply(b, aten.movedim.int, axis, -1).elements(b)


def _placed(lowering: Lowering, rows: Value, axis: int) -> View:
    """`rows` with the last axis moved back to `axis`."""
    return View.of(rows).apply(lowering.builder, aten.movedim.int, -1, axis)


def _require_f32_result(dtype: torch.dtype | None) -> None:
    if dtype not in (None, torch.float32):
        raise Unsupported(f"in {dtype}", "keep the model in float32")
