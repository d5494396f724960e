"""Negative log-likelihood of class labels (arithmetic.md section 6: a gather, no one-hot sum) and mean
squared error.

As in torch, a row with the label `ignore` does not count. The mean is over the rows that count, weighted by
class; it is NaN if no row counts. The functions are defined for all labels. A label that is neither `ignore`
nor in 0 … C-1 adds zero to the loss and to the gradient; its row counts, but with weight 0 if classes have
weights.

| `reduction` | loss | g of the gradient |
|---|---|---|
| 0, none | [B] | [B] |
| 1, mean | [] | [] |
| 2, sum | [] | [] |
"""

from __future__ import annotations

import torch
from torch import Tensor

from protocol.numerics.elementwise import neg
from protocol.numerics.operations import div, mul, select
from protocol.numerics.types import DType
from protocol.program.builder import Builder, Value
from protocol.program.library.function import define, define_by_body
from protocol.program.library.rows import count_up, mean_last, sum_last

NOWHERE = -1
"""An index for which `gather` gives zero."""
NONE, MEAN, SUM = 0, 1, 2
"""torch's codes of reductions."""


@define_by_body("nll_loss")
def nll_loss(
    b: Builder,
    log_probabilities: Value,
    labels: Value,
    weight: Value | None = None,
    *,
    ignore: int,
    reduction: int,
) -> tuple[Value, Value]:
    """The loss, f32 [B] or [], and the total weight of the rows that count, f32 [].

    The operands are the log-probabilities, f32 [B, C], the labels, i32 [B], and the weight, f32 [C] or none.
    """
    batch, classes = log_probabilities.shape
    size, zero = b.i32(classes), b.constant(DType.F32, (), 0.0)
    offset = b.mul(count_up(b, batch), size)
    counts = _counts(b, labels, ignore)
    inside = b.and_(b.and_(b.le(b.i32(0), labels), b.lt(labels, size)), counts)
    index = b.select(inside, b.add(offset, labels), b.i32(NOWHERE))
    picked = b.neg(b.gather(b.reshape(log_probabilities, (batch * classes,)), index))
    weights = b.cast(counts, DType.F32)
    if weight is not None:
        weights = b.select(counts, b.gather(weight, labels), zero)
        picked = b.mul(picked, weights)
    total = sum_last(b, weights)
    if reduction == NONE:
        return picked, b.reshape(total, ())
    loss = sum_last(b, picked)
    return b.reshape(b.div(loss, total) if reduction == MEAN else loss, ()), b.reshape(total, ())


def _nll_loss_grad(
    g: Tensor,
    labels: Tensor,
    total: Tensor,
    weight: Tensor | None = None,
    *,
    classes: int,
    ignore: int,
    reduction: int,
) -> Tensor:
    each = neg(div(g, total) if reduction == MEAN else g)
    each = each.reshape(-1, 1) if reduction == NONE else each
    each = each if weight is None else mul(each, weight)
    # Fill with zeros, then write one place of each row: faster for 50,257 columns than comparing all. A row
    # without a place writes its zero to column 0, so that shapes do not depend on the data.
    inside = (labels >= 0) & (labels < classes) & (labels != ignore)
    if classes == 1:  # each row has one place, and the weight may widen it by broadcasting, as in the body
        return select(inside[:, None], each, torch.zeros((), dtype=torch.float32, device=labels.device))
    place = torch.where(inside, labels, 0).to(torch.int64)[:, None]
    each = each.expand(labels.shape[0], classes).gather(1, place)
    zeros = torch.zeros(labels.shape[0], classes, dtype=torch.float32, device=labels.device)
    return zeros.scatter_(1, place, select(inside[:, None], each, torch.zeros_like(each)))


@define("nll_loss_grad", kernel=_nll_loss_grad)
def nll_loss_grad(
    b: Builder,
    g: Value,
    labels: Value,
    total: Value,
    weight: Value | None = None,
    *,
    classes: int,
    ignore: int,
    reduction: int,
) -> Value:
    """The gradient, f32 [B, C]. In each row that counts, the element in the label's column is -g, multiplied
    by the label's weight if there are weights. All other elements are zero.

    For the mean, g is first divided by `total`.

    The operands are g f32 [] or [B], labels i32 [B], total f32 [], and weight f32 [C] or none.
    """
    batch = labels.shape[0]
    each = b.neg(b.div(g, total) if reduction == MEAN else g)
    each = b.reshape(each, (batch, 1)) if reduction == NONE else each
    each = each if weight is None else b.mul(each, weight)
    hit = b.eq(b.reshape(labels, (batch, 1)), count_up(b, classes))
    counts = b.reshape(_counts(b, labels, ignore), (batch, 1))
    return b.select(b.and_(hit, counts), each, b.constant(DType.F32, (), 0.0))


@define_by_body("mse_loss")
def mse_loss(b: Builder, x: Value, y: Value, *, reduction: int) -> Value:
    """The squares (x - y)^2, f32 [N]; with a reduction, their mean or their sum, f32 []. x and y are f32 [N]."""
    difference = b.sub(x, y)
    square = b.mul(difference, difference)
    if reduction == NONE:
        return square
    return b.reshape(mean_last(b, square) if reduction == MEAN else sum_last(b, square), ())


@define_by_body("mse_loss_grad")
def mse_loss_grad(b: Builder, g: Value, x: Value, y: Value, *, reduction: int) -> Value:
    """The gradient of x [N]: (x - y) (2 g / N) for the mean, (x - y) (2 g) otherwise.

    g is f32 [N] without a reduction, else f32 [].
    """
    twice = b.add(g, g)
    if reduction == MEAN:
        twice = b.div(twice, b.constant(DType.F32, (), float(x.shape[0])))
    return b.mul(b.sub(x, y), twice)


def _counts(b: Builder, labels: Value, ignore: int) -> Value:
    return b.xor(b.eq(labels, b.i32(ignore)), b.constant(DType.BOOL, (), True))
