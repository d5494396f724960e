"""Combines the results of a step's units by exact sums or means (arithmetic.md section 5)."""

from __future__ import annotations

import torch
from torch import Tensor

from protocol.numerics.operations import div
from protocol.numerics.sums import sum_f32
from protocol.numerics.types import DType
from protocol.program.builder import Builder, Value
from protocol.program.library.function import define
from protocol.program.library.rows import sum_last

MOST = 16
"""Maximum number of tensors in one call; the form in `forms` has a word for each of them."""

BLOCK = 1 << 16
"""Number of elements of each tensor that the CPU sums at a time. For 16 tensors such a block takes 4 MiB, so
it stays in the cache.
"""


def _sum_units(*tensors: Tensor, divisor: int) -> Tensor:
    first = tensors[0]
    share = torch.full((), float(divisor), dtype=torch.float32, device=first.device)
    flat = [x.reshape(-1) for x in tensors]
    step = BLOCK if first.device.type == "cpu" else first.numel()
    out = torch.empty_like(flat[0])
    for at in range(0, first.numel(), step):
        block = torch.stack([x[at : at + step] for x in flat])
        out[at : at + step] = div(sum_f32(block, axis=0).view(-1), share)
    return out.view(first.shape)


@define("sum_units", kernel=_sum_units)
def sum_units(b: Builder, *tensors: Value, divisor: int) -> Value:
    """The exact element-wise sum of 1 … 16 f32 tensors of one shape, rounded, then divided by `divisor` and
    rounded again.
    """
    columns = [b.reshape(x, (x.type.elements, 1)) for x in tensors]
    total = sum_last(b, b.concat(columns, 1))
    return b.reshape(b.div(total, b.constant(DType.F32, (), float(divisor))), tensors[0].shape)
