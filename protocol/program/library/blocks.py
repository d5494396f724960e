"""Runs kernels in blocks of rows, so that their temporaries stay in cache on the CPU.

This is only for functions of single rows, where a block's result does not depend on other blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from protocol.numerics.types import canonical

BLOCK = 1 << 20
"""Elements of a block: 4 MiB of f32. The overhead of a block is about fifty calls of torch, or 0.1 ms."""


def by_rows(kernel: Callable[..., tuple[Tensor, ...]], *operands: Tensor) -> tuple[Tensor, ...]:
    """Run a kernel on one block of rows after another.

    Operands and results are [M, …]; the first operand is the largest.
    """
    first: Any = operands[0]
    rows = max(1, BLOCK * first.shape[0] // first.numel())
    if first.device.type != "cpu" or first.shape[0] <= rows:
        return kernel(*operands)
    results = [kernel(*block) for block in zip(*(x.split(rows) for x in operands))]
    return tuple(torch.cat(column) for column in zip(*results))


def canonical_in_place(x: Tensor) -> Tensor:
    """`canonical` of an f32 tensor that nothing else uses. On the CPU it works in place, and needs only one
    pass if there is no NaN.
    """
    if x.device.type != "cpu":
        return canonical(x)
    return x.nan_to_num_(math.nan, math.inf, -math.inf) if bool(torch.isnan(torch.amin(x))) else x
