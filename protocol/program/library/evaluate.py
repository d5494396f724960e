"""Evaluates bodies of library functions on tensors when no compiled kernel may be used. The results have the
same bits as those of the functions' programs.

A body is a function of a builder. `TensorOperations` has the methods of `Builder` that these bodies call, but
computes with torch instead of recording. This is faster than running the program: an exact sum is one call of
`sum_f32`, rows need no padding, and NaN is made canonical only at the end, because no operation here depends
on the bits of a NaN. tests/unit/library/test_bits.py compares every function with its program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from protocol.numerics import elementwise, indexing, reductions
from protocol.numerics.sums import sum_f32
from protocol.numerics.types import DType, canonical
from protocol.program.library.blocks import by_rows

Body = Callable[..., Any]


def evaluate(
    body: Body, operands: Sequence[Tensor], attributes: Mapping[str, Any], rows: int = 0
) -> tuple[Tensor, ...]:
    """The canonical results of a body on tensors.

    `rows` says how many operands, counted from the first, are divided into rows. These operands have shapes
    [..., K] with the same leading axes, and each row of the results depends only on the same row of these
    operands. If `rows` is not 0, the results are computed in blocks of rows, which stay in cache.
    """

    def run(*operands: Tensor) -> tuple[Tensor, ...]:
        results = body(TensorOperations(operands[0].device), *operands, **attributes)
        return tuple(canonical(x) for x in (results if isinstance(results, tuple) else (results,)))

    if not rows:
        return run(*operands)
    tables = [x.reshape(-1, x.shape[-1]) for x in operands[:rows]]
    results = by_rows(lambda *block: run(*block, *operands[rows:]), *tables)
    return tuple(x.reshape(*operands[0].shape[:-1], x.shape[-1]) for x in results)


@dataclass(frozen=True)
class RowExponents:
    """The result of `exponent`. It stands for the exponents of `rows`."""

    rows: Tensor


@dataclass(frozen=True)
class FixedRows:
    """The result of `to_fixed`. It stands for the fixed-point integers of `rows`."""

    rows: Tensor


@dataclass(frozen=True)
class FixedSums:
    """The result of `sum`. It stands for the sum of the fixed-point integers of each of `rows`."""

    rows: Tensor


class TensorOperations:
    """Methods of `Builder` on f32, i32 and bool tensors. NaN in results need not be canonical."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def constant(self, dtype: DType, shape: Sequence[int], value: float) -> Tensor:
        return torch.full(tuple(shape), value, dtype=dtype.storage, device=self._device)

    def i32(self, value: int) -> Tensor:
        return self.constant(DType.I32, (), value)

    def reshape(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        return x.reshape(tuple(shape))

    def transpose(self, x: Tensor, first: int, second: int) -> Tensor:
        return x.transpose(first, second)

    def slice(self, x: Tensor, axis: int, start: int, stop: int) -> Tensor:
        return x.narrow(axis, start, stop - start)

    def concat(self, pieces: Sequence[Tensor], axis: int) -> Tensor:
        return torch.cat(list(pieces), dim=axis)

    def pad(self, x: Tensor, shape: Sequence[int], low: Sequence[int], fill: float) -> Tensor:
        out = torch.full(tuple(shape), fill, dtype=x.dtype, device=x.device)
        out[tuple(slice(start, start + size) for start, size in zip(low, x.shape, strict=True))] = x
        return out

    def pad_rows(self, x: Tensor, _fill: float) -> Tensor:
        """Return x: rows may have any length here, and padding changes neither a sum nor a maximum."""
        return x

    def gather(self, x: Tensor, index: Tensor) -> Tensor:
        return indexing.gather(x, index)

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.add(x, y)

    def sub(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.sub(x, y)

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.mul(x, y)

    def div(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.div(x, y)

    def minimum(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.minimum(x, y).add_(0.0)

    def maximum(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.maximum(x, y).add_(0.0)

    def sqrt(self, x: Tensor) -> Tensor:
        return elementwise.sqrt(x)

    def neg(self, x: Tensor) -> Tensor:
        return torch.neg(x)

    def lt(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.lt(x, y)

    def le(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.le(x, y)

    def eq(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.eq(x, y)

    def select(self, condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return torch.where(condition, x, y)

    def and_(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.bitwise_and(x, y)

    def xor(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.bitwise_xor(x, y)

    def cast(self, x: Tensor, dtype: DType) -> Tensor:
        """Cast bool to f32, the only cast in these bodies."""
        if x.dtype != torch.bool or dtype is not DType.F32:
            raise TypeError(f"expected a cast from BOOL to F32, got {x.dtype} to {dtype.name}; add it here")
        return x.to(torch.float32)

    def max(self, x: Tensor) -> Tensor:
        return reductions.max_f32(x)

    def argmax(self, x: Tensor) -> Tensor:
        return reductions.argmax(x)

    def exponent(self, x: Tensor) -> RowExponents:
        return RowExponents(x)

    def to_fixed(self, x: Tensor, e: RowExponents) -> FixedRows:
        if e.rows is not x:
            raise TypeError("expected a row's own exponent; write the kernel of this function by hand")
        return FixedRows(x)

    def sum(self, x: FixedRows) -> FixedSums:
        return FixedSums(x.rows)

    def round_scaled(self, s: FixedSums, e: RowExponents, *, p: int) -> Tensor:
        """The rounded exact sums of the rows."""
        if not isinstance(s, FixedSums) or e.rows is not s.rows or p != reductions.SUM_BITS:
            raise TypeError(
                "expected the sum of rows in fixed point; write the kernel of this function by hand"
            )
        return sum_f32(s.rows)
