"""Single-element operations, compiled for f32 on the CPU where possible: arithmetic.md section 2.

Each operation gives exactly the same bits as the function of the same name in `elementwise`. It calls that
function if there are few elements, if the operands are not contiguous f32, if they differ in shape (a single
element with no more axes than the other operand is allowed), or if no compiled function may be used
(`kernels.fused_dispatch`).
"""

from __future__ import annotations

import torch
from torch import Tensor

from protocol.numerics import elementwise
from protocol.numerics.elementwise import MANY
from protocol.numerics.kernels.fused import Fused, Pair
from protocol.numerics.kernels.fused_dispatch import fused_for
from protocol.numerics.types import DType


def add(x: Tensor, y: Tensor) -> Tensor:
    """x + y; f32 rounds to nearest even, integers wrap."""
    result = _compiled(Pair.ADD, x, y)
    return elementwise.add(x, y) if result is None else result


def sub(x: Tensor, y: Tensor) -> Tensor:
    """x - y; f32 rounds to nearest even, integers wrap."""
    result = _compiled(Pair.SUB, x, y)
    return elementwise.sub(x, y) if result is None else result


def mul(x: Tensor, y: Tensor) -> Tensor:
    """x * y; f32 rounds to nearest even, integers wrap."""
    result = _compiled(Pair.MUL, x, y)
    return elementwise.mul(x, y) if result is None else result


def div(x: Tensor, y: Tensor) -> Tensor:
    """x / y on f32, round to nearest even; 0/0 and inf/inf are NaN."""
    result = _compiled(Pair.DIV, x, y)
    return elementwise.div(x, y) if result is None else result


def minimum(x: Tensor, y: Tensor) -> Tensor:
    """Smaller of two f32; NaN if either is NaN. A zero result is +0."""
    result = _compiled(Pair.MINIMUM, x, y)
    return elementwise.minimum(x, y) if result is None else result


def maximum(x: Tensor, y: Tensor) -> Tensor:
    """Larger of two f32; NaN if either is NaN. A zero result is +0."""
    result = _compiled(Pair.MAXIMUM, x, y)
    return elementwise.maximum(x, y) if result is None else result


def lt(x: Tensor, y: Tensor, dtype: DType) -> Tensor:
    """x < y as bool; false if either is NaN. `dtype` tells u32 from i32."""
    result = _compiled(Pair.LT, x, y)
    return elementwise.lt(x, y, dtype) if result is None else result


def le(x: Tensor, y: Tensor, dtype: DType) -> Tensor:
    """x <= y as bool; false if either is NaN. `dtype` tells u32 from i32."""
    result = _compiled(Pair.LE, x, y)
    return elementwise.le(x, y, dtype) if result is None else result


def select(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """x where the bool `condition` holds, else y."""
    if x.dtype == y.dtype == torch.float32 and condition.numel() >= MANY and x.device.type == "cpu":
        fused = _fused_for(condition, x, y)
        if fused is not None:
            return fused.select(condition, x, y)
    return elementwise.select(condition, x, y)


def _compiled(operation: Pair, x: Tensor, y: Tensor) -> Tensor | None:
    """The compiled operation's result. None for few elements, for other types than f32, and if `_fused_for`
    gives None.
    """
    larger = y if x.numel() == 1 else x
    if larger.numel() < MANY or not x.dtype == y.dtype == torch.float32:
        return None
    fused = _fused_for(larger, x, y)
    return None if fused is None else fused.pair(operation, x, y)


def _fused_for(whole: Tensor, *operands: Tensor) -> Fused | None:
    """The compiled operations, if every operand is contiguous and either has the shape of `whole` or is a
    single element with no more axes than `whole`.

    None otherwise, and None if no compiled operations may be used.
    """
    for x in (whole, *operands):
        alike = x.shape == whole.shape or (x.numel() == 1 and x.dim() <= whole.dim())
        if not (alike and x.is_contiguous()):
            return None
    fused = fused_for(operands[0])
    return fused if isinstance(fused, Fused) else None
