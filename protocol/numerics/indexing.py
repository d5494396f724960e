"""Rows chosen by an index: `gather` and `scatter_sum`, arithmetic.md sections 4 and 5, encoding.md section 3.

Both are total: for an index outside the table, `gather` gives zero bits and `scatter_sum` drops the value.
The order of duplicate indices has no effect, because contributions are added as integers.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from protocol.numerics.rows import exponent, round_scaled, to_fixed
from protocol.numerics.types import NumericsError


def gather(table: Tensor, index: Tensor) -> Tensor:
    """Rows `table[index]`, of shape [n..., c...], for a table [R, c...] and an i32 index [n...]. Where the
    index is outside 0..R-1, the row is zero bits.
    """
    _require_index(index)
    rows = table.shape[0]
    inside = (index >= 0) & (index < rows)
    # `table[index]` would copy an index of rank 0 back from its device.
    taken = table.index_select(0, torch.where(inside, index, 0).reshape(-1)).reshape(
        index.shape + table.shape[1:]
    )
    mask = inside.reshape(inside.shape + (1,) * (table.dim() - 1))
    return torch.where(mask, taken, torch.zeros((), dtype=table.dtype, device=table.device))


def scatter_sum_i64(index: Tensor, value: Tensor, rows: int) -> Tensor:
    """i64 [rows, c...] with out[r] = sum of value[k] over all k where index[k] = r, wrapping.

    `index` is i32 [n], `value` i64 [n, c...]; indices outside 0..rows-1 are dropped.
    """
    _require_index(index)
    inside = (index >= 0) & (index < rows)
    # Dropped contributions go to an extra row, removed at the end, so shapes do not depend on the data.
    target = torch.where(inside, index, rows).to(torch.int64)
    # torch adds a table of one column several times faster without its second axis.
    shape = value.shape[1:]
    value = value.reshape(-1) if math.prod(shape) == 1 else value
    out = torch.zeros((rows + 1, *value.shape[1:]), dtype=torch.int64, device=value.device)
    return out.index_add_(0, target, value)[:rows].reshape(rows, *shape)


def scatter_sum(index: Tensor, value: Tensor, rows: int) -> Tensor:
    """f32 [rows, c...]: out[r] is the sum of the f32 rows value[k] over all k where index[k] = r. The sums
    are exact in fixed point, and each is rounded once.

    Each column c has one exponent over all n values, including dropped ones, so a column that holds a NaN or
    an infinity is NaN in every row. `index` is i32 [n], `value` f32 [n, c...].
    """
    e = exponent(value, axis=0)
    return round_scaled(scatter_sum_i64(index, to_fixed(value, e), rows), e, 30)


def _require_index(index: Tensor) -> None:
    if index.dtype != torch.int32:
        raise NumericsError(f"expected an i32 index, got {index.dtype}; cast it first")
