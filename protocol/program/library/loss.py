"""Mean negative log-likelihood of class labels and its gradient: arithmetic.md section 6 (a gather, no one-hot sum).

Total, as every function here: a label outside 0 … C-1 contributes zero to the loss and to the gradient, and the mean is
always over the whole batch.
"""

from __future__ import annotations

import torch
from torch import Tensor

from protocol.numerics.elementwise import div, neg, select
from protocol.numerics.indexing import gather
from protocol.numerics.sums import sum_f32
from protocol.numerics.types import DType
from protocol.program.builder import Builder, Value
from protocol.program.library.function import define
from protocol.program.library.rows import count_up, sum_last

NOWHERE = -1
"""An index that `gather` answers with zero."""


def _nll_loss(log_probabilities: Tensor, labels: Tensor) -> Tensor:
    batch, classes = log_probabilities.shape
    offset = torch.arange(batch, dtype=torch.int32, device=labels.device) * classes
    inside = (labels >= 0) & (labels < classes)
    picked = gather(log_probabilities.reshape(-1), torch.where(inside, offset + labels, NOWHERE))
    return neg(div(sum_f32(picked), torch.full_like(picked[:1], batch))).reshape(())


@define("nll_loss", kernel=_nll_loss)
def nll_loss(b: Builder, log_probabilities: Value, labels: Value) -> Value:
    """f32 [B, C] and i32 [B] to f32 []: minus the mean of the labels' log-probabilities."""
    batch, classes = log_probabilities.shape
    size = b.i32(classes)
    offset = b.mul(count_up(b, batch), size)
    inside = b.and_(b.le(b.i32(0), labels), b.lt(labels, size))
    index = b.select(inside, b.add(offset, labels), b.i32(NOWHERE))
    picked = b.gather(b.reshape(log_probabilities, (batch * classes,)), index)
    mean = b.div(sum_last(b, picked), b.constant(DType.F32, (), float(batch)))
    return b.reshape(b.neg(mean), ())


def _nll_loss_grad(g: Tensor, labels: Tensor, *, classes: int) -> Tensor:
    each = neg(div(g, torch.full_like(g, labels.shape[0])))
    hit = labels[:, None] == torch.arange(classes, dtype=torch.int32, device=labels.device)
    return select(hit, each, torch.zeros_like(each))


@define("nll_loss_grad", kernel=_nll_loss_grad)
def nll_loss_grad(b: Builder, g: Value, labels: Value, *, classes: int) -> Value:
    """f32 [] and i32 [B] to f32 [B, C]: -g / B at each row's label, zero elsewhere."""
    (batch,) = labels.shape
    each = b.neg(b.div(g, b.constant(DType.F32, (), float(batch))))
    hit = b.eq(b.reshape(labels, (batch, 1)), count_up(b, classes))
    return b.select(hit, each, b.constant(DType.F32, (), 0.0))
