"""Gradient clipping as in `torch.nn.utils`: by the norm of all gradients together, or element by element.

Squares are summed as in arithmetic.md section 5, in rows of 4,096, and the sums of the rows are summed in the
same way. So no sum in a dispute has more blocks than fit into one move.
"""

from __future__ import annotations

import torch
from torch import Tensor

from protocol.numerics.sums import sum_f32
from protocol.numerics.types import DType
from protocol.program.builder import Builder, Value
from protocol.program.library.blocks import by_rows
from protocol.program.library.function import define, define_by_body
from protocol.program.library.rows import sum_last

ROW = 4096
"""Elements of one sum: 32 chunks as i64. A solver states at most 128 block results in one move (dispute.md
section 5).
"""

DAMPING = 1e-6
"""The number that torch adds to the norm before dividing."""


def _sum(x: Tensor, squared: bool = False) -> Tensor:
    """The sum of f32 [N], or of its squares. The last row may be shorter than `ROW`."""
    # A sum does not depend on the bits of NaNs, so the squares need not be canonical.
    term = (lambda part: sum_f32(torch.mul(part, part))) if squared else sum_f32
    whole = x.numel() // ROW * ROW
    sums = []
    if whole:
        (found,) = by_rows(lambda rows: (term(rows),), x[:whole].view(-1, ROW))
        sums.append(found.view(-1))
    if whole < x.numel():
        sums.append(term(x[whole:]))
    total = torch.cat(sums)
    return total.reshape(()) if total.numel() == 1 else _sum(total)


def _sum_body(b: Builder, x: Value) -> Value:
    """Add instructions to the body `b` that sum x, f32 [N], in the same way as `_sum` does without squares.
    Returns the sum, f32 [].
    """
    while x.shape[0] > ROW:
        rows = -(-x.shape[0] // ROW)
        if rows * ROW != x.shape[0]:
            x = b.pad(x, (rows * ROW,), (0,), 0.0)
        x = b.reshape(sum_last(b, b.reshape(x, (rows, ROW))), (rows,))
    return b.reshape(sum_last(b, x), ())


def _square_sum(x: Tensor) -> Tensor:
    return _sum(x.reshape(-1), squared=True)


@define("square_sum", kernel=_square_sum)
def square_sum(b: Builder, x: Value) -> Value:
    """The sum of the squares of all elements of x, as f32 []. x is f32 of any shape."""
    flat = b.reshape(x, (x.type.elements,))
    return _sum_body(b, b.mul(flat, flat))


@define_by_body("clip_scale")
def clip_scale(b: Builder, sums: Value, *, limit: float) -> tuple[Value, Value]:
    """The norm of all gradients and the factor min(1, limit / (norm + 1e-6)), both f32 [].

    `sums`, f32 [T], holds the `square_sum` of every gradient.

    If a gradient has a NaN or an infinity, or a square exceeds f32, both results are NaN.
    """
    norm = b.sqrt(_sum_body(b, sums))
    bound, damping, one = (b.constant(DType.F32, (), x) for x in (limit, DAMPING, 1.0))
    return norm, b.minimum(b.div(bound, b.add(norm, damping)), one)


@define_by_body("clip_value")
def clip_value(b: Builder, x: Value, *, limit: float) -> Value:
    """Clamp every element of x to -limit … limit; NaN stays. x is f32 of any shape."""
    bound = b.constant(DType.F32, (), limit)
    return b.minimum(b.maximum(x, b.neg(bound)), bound)
