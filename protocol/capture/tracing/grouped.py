"""Grouped matrix products, as in models with experts.

torch's own operation cannot be traced in float32, because its fake tensors require bfloat16. So a trace
replaces it by other operations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor
from torch._ops import OpOverload

aten = torch.ops.aten


def grouped_product(
    x: Tensor,
    y: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """x times y, divided into groups. The groups consist of rows of x, of columns of y, or of the terms that
    are summed; `offs` holds their ends. Each group of rows or columns is multiplied by a matrix that belongs
    to the group. Each group of terms gives a separate product. Without `offs`, x and y hold one matrix per
    group.

    Every row or column is multiplied by the matrices of all groups, and then only the product with the matrix
    of its group is kept, so that no shape depends on the data. Results for rows or columns after the last
    group are zero; torch leaves these results unwritten.
    """
    if offs is None:
        product = torch.bmm(x, y)
    elif x.dim() == 2 and y.dim() == 2:
        mine = _of_groups(offs, x.shape[1]).unsqueeze(1)
        product = torch.bmm(torch.where(mine, x, 0.0), y.expand(len(offs), -1, -1))
    elif x.dim() == 2:
        mine = _of_groups(offs, x.shape[0]).unsqueeze(2)
        product = torch.where(mine, torch.bmm(x.expand(len(offs), -1, -1), y), 0.0).sum(0)
    else:
        mine = _of_groups(offs, y.shape[1]).unsqueeze(1)
        product = torch.where(mine, torch.bmm(x, y.expand(len(offs), -1, -1)), 0.0).sum(0)
    product = product if bias is None else product + bias
    return product if out_dtype is None else product.to(out_dtype)


def _of_groups(offs: Tensor, count: int) -> Tensor:
    """bool [groups, count]: whether each group contains each of the `count` places."""
    place = torch.arange(count, device=offs.device)
    ends = offs.unsqueeze(1)
    starts = torch.cat([torch.zeros_like(ends[:1]), ends[:-1]])
    return (place >= starts) & (place < ends)


WRITTEN_OUT: Final[dict[OpOverload, Callable[..., Any]]] = {aten._grouped_mm.default: grouped_product}
"""Replacements for operations that the tracer cannot trace."""
