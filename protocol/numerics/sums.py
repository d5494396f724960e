"""Exact sums, compiled where possible: arithmetic.md section 5. The other reductions are in `reductions`."""

from __future__ import annotations

from torch import Tensor

from protocol.numerics import reductions
from protocol.numerics.kernels.fused_dispatch import fused_for


def sum_f32(x: Tensor, axis: int = -1) -> Tensor:
    """The sum of each row along `axis`, as f32. It is round((sum of m_30(x)) * 2^(e-30)), with a single
    rounding, where e is the row's exponent and m_30(x) = rint(x * 2^(30-e)). The sum is NaN if its row holds
    NaN or infinity.
    """
    fused = fused_for(x)
    if fused is not None and x.dim() and axis in (-1, x.dim() - 1):
        return fused.sum_rows(x)
    if fused is not None and x.dim() == 2:
        return fused.sum_columns(x)
    return reductions.sum_f32(x, axis)
