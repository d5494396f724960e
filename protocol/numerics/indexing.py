"""Rows chosen by an index: `gather`, encoding.md section 3. It is total: an index outside the table reads zero bits."""

from __future__ import annotations

import torch
from torch import Tensor

from protocol.numerics.types import NumericsError


def gather(table: Tensor, index: Tensor) -> Tensor:
    """Rows `table[index]`: table [R, c...], i32 index [n...], result [n..., c...]; outside 0..R-1 all bits are zero."""
    _require_index(index)
    rows = table.shape[0]
    inside = (index >= 0) & (index < rows)
    taken = table[torch.where(inside, index, 0).to(torch.int64)]
    mask = inside.reshape(inside.shape + (1,) * (table.dim() - 1))
    return torch.where(mask, taken, torch.zeros((), dtype=table.dtype, device=table.device))


def _require_index(index: Tensor) -> None:
    if index.dtype != torch.int32:
        raise NumericsError(f"expected an i32 index, got {index.dtype}; cast it first")
