"""Kernels in cache-sized blocks: on the CPU a fused kernel's temporaries then never leave the cache.

Only for functions of single elements or of single rows: what one block gives does not depend on the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

BLOCK = 1 << 16
"""Elements of a block: 256 KiB of f32."""


def by_element(kernel: Callable[..., Tensor], *operands: Tensor) -> Tensor:
    """A kernel of single elements on operands of one shape."""
    first = operands[0]
    if first.device.type != "cpu" or first.numel() <= BLOCK:
        return kernel(*operands)
    blocks = zip(*(x.reshape(-1).split(BLOCK) for x in operands))
    return torch.cat([kernel(*block) for block in blocks]).reshape(first.shape)


def by_rows(kernel: Callable[..., tuple[Tensor, ...]], *operands: Tensor) -> tuple[Tensor, ...]:
    """A kernel of rows on operands [M, …] of which the first is the largest; its results are [M, …] too."""
    first: Any = operands[0]
    rows = max(1, BLOCK * first.shape[0] // first.numel())
    if first.device.type != "cpu" or first.shape[0] <= rows:
        return kernel(*operands)
    results = [kernel(*block) for block in zip(*(x.split(rows) for x in operands))]
    return tuple(torch.cat(column) for column in zip(*results))
