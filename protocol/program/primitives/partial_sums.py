"""Reductions in which each element of the result is the sum of a part of a row. `scatter_sum` selects the
part by index; for `prefix_sum` the part ends at the element's position.

encoding.md section 3, opcodes 0x0705 and 0x0801; arithmetic.md section 5. Blocks and folds are those of
`sum`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from torch import Tensor

from protocol.numerics import indexing, reductions
from protocol.numerics.reference import rows as reference
from protocol.numerics.types import DType
from protocol.program import attributes as attrs
from protocol.program.instruction import Instruction
from protocol.program.opcodes import Op
from protocol.program.primitives.base import (
    Read,
    Types,
    require,
    require_count,
    require_dtype,
    to_bits,
)
from protocol.program.primitives.reductions import (
    Block,
    Piece,
    block_length,
    fold_sum,
    reduction,
    require_rows,
    sum_of,
)
from protocol.program.types import TensorType


def _one_a_term(instruction: Instruction) -> int:
    return instruction.operands[-1].type.elements


# scatter_sum


def _infer_scatter(operands: Types, attributes: bytes, _declared: TensorType | None) -> TensorType:
    rows = attrs.decode_index(attributes)
    require_count(operands, 2)
    index, x = operands
    require_dtype(index, (DType.I32,), "an index")
    require_dtype(x, (DType.I64,), "x")
    require_rows(x)
    require(index.shape == x.shape[-1:], f"one index for each of the {x.shape[-1]} elements of a row", index)
    return TensorType(DType.I64, (*x.shape[:-1], rows))


def _scatter(instruction: Instruction, operands: Sequence[Tensor]) -> Tensor:
    index, x = operands
    rows = instruction.result.shape[-1]
    return indexing.scatter_sum_i64(index, x.movedim(-1, 0), rows).movedim(0, -1)


def _scatter_reads(instruction: Instruction, element: int, lo: int, hi: int) -> Iterator[Read]:
    start, count = lo * block_length(instruction), (hi - lo) * block_length(instruction)
    row = element // instruction.result.shape[-1]
    yield Read(0, start, count)
    yield Read(1, row * instruction.operands[1].type.shape[-1] + start, count)


def _scatter_word(block: Block) -> int:
    index, x = block.values
    row = block.element % block.instruction.result.shape[-1]
    return to_bits(reference.scatter_sum_i64(index, x, row), DType.I64)


def _scatter_piece(piece: Piece) -> int:
    index, x = piece.values
    row = piece.element % piece.instruction.result.shape[-1]
    return sum_of(np.where(index == row, x, 0))


# prefix_sum


def _infer_prefix(operands: Types, attributes: bytes, _declared: TensorType | None) -> TensorType:
    attrs.decode_nothing(attributes)
    require_count(operands, 1)
    require_dtype(operands[0], (DType.I64,))
    require_rows(operands[0])
    return operands[0]


def _prefix(_instruction: Instruction, operands: Sequence[Tensor]) -> Tensor:
    return reductions.prefix_sum(operands[0])


def _prefix_reads(instruction: Instruction, element: int, lo: int, hi: int) -> Iterator[Read]:
    """Read the row's elements in blocks [lo, hi), but none behind the position of the result's element in its
    row. If that position precedes these blocks, read nothing.
    """
    start, count = lo * block_length(instruction), (hi - lo) * block_length(instruction)
    position = element % instruction.result.shape[-1]
    taken = min(count, position + 1 - start)
    if taken > 0:
        yield Read(0, element - position + start, taken)


def _prefix_word(block: Block) -> int:
    return to_bits(reference.sum_i64(block.values[0]), DType.I64) if block.values else 0


def _prefix_piece(piece: Piece) -> int:
    return sum_of(piece.values[0]) if piece.values else 0


PARTIAL_SUMS = (
    reduction(
        Op.SCATTER_SUM,
        _infer_scatter,
        _scatter,
        _scatter_word,
        _scatter_piece,
        fold_sum,
        reads=_scatter_reads,
        operations=_one_a_term,
    ),
    reduction(
        Op.PREFIX_SUM,
        _infer_prefix,
        _prefix,
        _prefix_word,
        _prefix_piece,
        fold_sum,
        reads=_prefix_reads,
        operations=_one_a_term,
    ),
)
