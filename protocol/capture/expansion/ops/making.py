"""Tensors that the step creates: matrices with given diagonals, indices of triangles, and ranges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from protocol.capture.expansion.table import aten, expands


@expands(aten.block_diag.default)
def block_diag(parts: Sequence[Tensor]) -> Tensor:
    """The given matrices along the diagonal, zeros elsewhere."""
    blocks = [torch.atleast_2d(part) for part in parts]
    width, left, rows = sum(block.shape[1] for block in blocks), 0, []
    for block in blocks:
        rows.append(F.pad(block, (left, width - left - block.shape[1])))
        left += block.shape[1]
    return torch.cat(rows)


@expands(aten.eye.default, aten.eye.m)
def eye(rows: int, columns: int | None = None, *, dtype: torch.dtype | None = None, **_: Any) -> Tensor:
    """Ones on the diagonal."""
    columns = rows if columns is None else columns
    same = torch.arange(rows).unsqueeze(-1) == torch.arange(columns)
    return same.to(dtype or torch.get_default_dtype())


@expands(aten.triu_indices.default)
def triu_indices(rows: int, columns: int, offset: int = 0, **_: Any) -> Tensor:
    """The indices of the elements on and above a diagonal, row by row."""
    return _places([(i, j) for i in range(rows) for j in range(max(0, i + offset), columns)])


@expands(aten.tril_indices.default)
def tril_indices(rows: int, columns: int, offset: int = 0, **_: Any) -> Tensor:
    """The indices of the elements on and below a diagonal, row by row."""
    return _places([(i, j) for i in range(rows) for j in range(min(columns, i + offset + 1))])


def _places(pairs: list[tuple[int, int]]) -> Tensor:
    """The given pairs as the columns of an i64 tensor [2, n]. Each of the tensor's two rows is a
    concatenation of ranges of consecutive numbers.
    """
    return torch.stack([_row([pair[k] for pair in pairs]) for k in (0, 1)])


def _row(numbers: list[int]) -> Tensor:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][0] + runs[-1][1]:
            runs[-1][1] += 1
        else:
            runs.append([number, 1])
    return torch.cat([torch.arange(first, first + count) for first, count in runs])


@expands(aten.linspace.default)
def linspace(first: float, last: float, count: int, *, dtype: torch.dtype | None = None, **_: Any) -> Tensor:
    """`count` evenly spaced numbers from `first` to `last`; the second half is computed backwards from `last`."""
    step = (last - first) / max(count - 1, 1)
    place = torch.arange(count, dtype=dtype or torch.get_default_dtype())
    from_end = (count - 1) - place
    half = torch.arange(count) < (count + 1) // 2
    return torch.where(half, first + place * step, last - from_end * step)
