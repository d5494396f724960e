"""Sums, cumulative sums and the position of the maximum: arithmetic.md section 5."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from protocol.numerics import reductions
from protocol.numerics.kernels.fused_dispatch import fused_for
from protocol.numerics.reductions import FLOAT64_TERMS, SUM_BITS
from protocol.numerics.rows import exponent, round_exact, round_scaled, row_scale, to_fixed, whole_in_row
from protocol.numerics.sums import sum_f32
from protocol.numerics.types import canonical
from protocol.program.builder import Builder, Value
from protocol.program.library.function import define, define_by_body
from protocol.program.library.rows import cut_rows, sum_last

BLOCK = 1 << 18
"""Number of elements in each block of rows that `column_sums` processes. A block is 1 MiB of f32, so it stays
in cache while it is scaled.
"""


@define_by_body("sum_rows")
def sum_rows(b: Builder, x: Value) -> Value:
    """f32 [M, K] to [M]: the sum of every row."""
    return b.reshape(sum_last(b, x), x.shape[:-1])


def column_sums(x: Tensor) -> Tensor:
    """The kernel of `sum_columns`. On the CPU without compiled code, it computes the exponents of all columns
    and then the sums, both block by block, unless x fits one block or has more than `FLOAT64_TERMS` rows.
    """
    rows = max(1, BLOCK // x.shape[1])
    if x.device.type != "cpu" or fused_for(x) is not None or not rows < x.shape[0] <= FLOAT64_TERMS:
        return sum_f32(x, axis=0).squeeze(0)
    blocks = x.split(rows)
    e = torch.stack([exponent(block, 0) for block in blocks]).amax(0)
    parts = [whole_in_row(block, e, SUM_BITS).sum(0, keepdim=True, dtype=torch.float64) for block in blocks]
    return round_exact(torch.cat(parts).sum(0), row_scale(e, SUM_BITS).squeeze(0))


@define("sum_columns", kernel=column_sums)
def sum_columns(b: Builder, x: Value) -> Value:
    """f32 [K, N] to [N]: the sum of every column, for example for the gradient of a bias."""
    return b.reshape(sum_last(b, b.transpose(x, 0, 1)), x.shape[1:])


@define_by_body("argmax_rows")
def argmax_rows(b: Builder, x: Value) -> Value:
    """f32 [M, K] to i32 [M]: the index of a row's first NaN, otherwise the lowest index of its maximum."""
    return b.reshape(b.argmax(b.pad_rows(x, -math.inf)), x.shape[:-1])


def _cumulative_sum(x: Tensor) -> Tensor:
    e = exponent(x)
    return canonical(round_scaled(reductions.prefix_sum(to_fixed(x, e)), e, 30))


@define("cumulative_sum", kernel=_cumulative_sum)
def cumulative_sum(b: Builder, x: Value) -> Value:
    """f32 [..., K] to the same shape: element j is the sum of elements 0 … j. Each row has one exponent."""
    rows = b.pad_rows(x, 0.0)
    e = b.exponent(rows)
    return cut_rows(b, b.round_scaled(b.prefix_sum(b.to_fixed(rows, e)), e, p=30), x.shape[-1])
