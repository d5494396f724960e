"""Kernels in blocks of rows: on the CPU a fused kernel's temporaries stay small, and so in cache.

Only for functions of single rows: a block's result does not depend on the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from protocol.numerics.types import canonical

BLOCK = 1 << 20
"""Elements of a block: 4 MiB of f32. A block costs some fifty calls of torch on its rows' moments, 0.1 ms or so."""


def by_rows(kernel: Callable[..., tuple[Tensor, ...]], *operands: Tensor) -> tuple[Tensor, ...]:
    """A kernel of rows on operands [M, …] of which the first is the largest; its results are [M, …] too."""
    first: Any = operands[0]
    rows = max(1, BLOCK * first.shape[0] // first.numel())
    if first.device.type != "cpu" or first.shape[0] <= rows:
        return kernel(*operands)
    results = [kernel(*block) for block in zip(*(x.split(rows) for x in operands))]
    return tuple(torch.cat(column) for column in zip(*results))


def canonical_in_place(x: Tensor) -> Tensor:
    """`canonical` for an unshared f32 tensor: on the CPU only a NaN costs more than one pass."""
    if x.device.type != "cpu":
        return canonical(x)
    return x.nan_to_num_(math.nan, math.inf, -math.inf) if bool(torch.isnan(torch.amin(x))) else x
