"""Reductions along the last axis: `exponent`, `dot`, `sum`, `max`, `argmax`, by blocks of one chunk.

Names that `partial_sums` also needs are public. See encoding.md section 3 ("Rows", "Block results");
arithmetic.md sections 3 to 5; dispute.md section 5 (split).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor

from protocol.numerics import contract, reductions, rows
from protocol.numerics.reference import floats
from protocol.numerics.reference import rows as reference
from protocol.numerics.types import DType
from protocol.program import attributes as attrs
from protocol.program.instruction import Instruction
from protocol.program.opcodes import Op
from protocol.program.primitives.base import (
    Load,
    Read,
    Reduction,
    Types,
    load_value,
    require,
    require_count,
    require_dtype,
    to_bits,
)
from protocol.program.types import CHUNK_BYTES, TensorType

LOW_HALF = 0xFFFFFFFF
WORD = (1 << 64) - 1

Reads = Callable[[Instruction, int, int, Load], Iterator[Read]]


@dataclass(frozen=True, slots=True)
class Block:
    """The input of a block result: the values of its reads, and the block's start in the row."""

    instruction: Instruction
    element: int
    start: int
    values: Sequence[Sequence[int]]


Word = Callable[[Block], int]
"""Computes the 64-bit result of one block."""


def require_rows(operand: TensorType) -> None:
    """Raise `RuleError` unless the rows, along the last axis, can be divided into blocks.

    The length of a row in bytes must divide 1,024 or be a multiple of it.
    """
    require(operand.rank >= 1, "an operand of rank 1 or more", operand)
    length = operand.shape[-1] * operand.dtype.itemsize
    aligned = CHUNK_BYTES % length == 0 or length % CHUNK_BYTES == 0
    require(
        aligned, f"rows whose bytes divide or are a multiple of {CHUNK_BYTES}", f"{length} bytes in {operand}"
    )


def block_count(instruction: Instruction) -> int:
    """Number of blocks in a row of the last operand, along which the instruction reduces."""
    row = instruction.operands[-1].type
    return max(1, row.shape[-1] * row.dtype.itemsize // CHUNK_BYTES)


def block_length(instruction: Instruction) -> int:
    """Number of elements of a row in one block."""
    return instruction.operands[-1].type.shape[-1] // block_count(instruction)


def block_reads(instruction: Instruction, element: int, block: int, _load: Load) -> Iterator[Read]:
    """Yield, for each operand, the read of block `block` of the row from which the element is computed."""
    length = instruction.operands[0].type.shape[-1]
    count = block_length(instruction)
    for k, row in enumerate(_rows(instruction, element)):
        yield Read(k, row * length + block * count, count)


def _rows(instruction: Instruction, element: int) -> tuple[int, ...]:
    """For each operand, the number of the row from which the element is computed.

    It equals the element's number, except for `dot`: element (batch, m, n) is computed from row (batch, m)
    of the first operand and row (batch, n) of the second.
    """
    if instruction.op is not Op.DOT:
        return (element,)
    m_size, n_size = instruction.result.shape[-2:]
    outer, n = divmod(element, n_size)
    return outer, outer // m_size * n_size + n


def term_operations(instruction: Instruction) -> int:
    """Number of operations: for each element of the result, the length of the row that is reduced to it."""
    return instruction.result.elements * instruction.operands[-1].type.shape[-1]


def _two_a_term(instruction: Instruction) -> int:
    return 2 * term_operations(instruction)


def reduction(
    op: Op,
    infer: Callable[[Types, bytes, TensorType | None], TensorType],
    evaluate: Callable[[Instruction, Sequence[Tensor]], Tensor],
    word: Word,
    fold: Callable[[int, int], int],
    *,
    reads: Reads = block_reads,
    operations: Callable[[Instruction], int] = term_operations,
) -> Reduction:
    """Make a registry entry from the functions for the word of a block and the fold of two words."""

    def block_result(instruction: Instruction, element: int, block: int, load: Load) -> int:
        values = [
            [load_value(instruction, read.operand, read.first + i, load) for i in range(read.count)]
            for read in reads(instruction, element, block, load)
        ]
        return word(Block(instruction, element, block * block_length(instruction), values))

    def element_of(instruction: Instruction, element: int, load: Load) -> int:
        total = block_result(instruction, element, 0, load)
        for block in range(1, block_count(instruction)):
            total = fold(total, block_result(instruction, element, block, load))
        return finish(total)

    def finish(total: int) -> int:
        return total & LOW_HALF if op in (Op.EXPONENT, Op.MAX, Op.ARGMAX) else total

    return Reduction(
        op,
        infer,
        evaluate,
        element_of,
        reads,
        operations,
        blocks=block_count,
        block_result=block_result,
        fold=fold,
        finish=finish,
    )


def _infer_row(source: DType, result: DType) -> Callable[[Types, bytes, TensorType | None], TensorType]:
    def infer(operands: Types, attributes: bytes, _declared: TensorType | None) -> TensorType:
        attrs.decode_nothing(attributes)
        require_count(operands, 1)
        require_dtype(operands[0], (source,))
        require_rows(operands[0])
        return TensorType(result, (*operands[0].shape[:-1], 1))

    return infer


def _infer_dot(operands: Types, attributes: bytes, _declared: TensorType | None) -> TensorType:
    attrs.decode_nothing(attributes)
    require_count(operands, 2)
    x, y = operands
    for operand in operands:
        require_dtype(operand, (DType.I32,))
        require(operand.rank >= 2, "an operand of rank 2 or more", operand)
        require_rows(operand)
    agree = x.shape[:-2] == y.shape[:-2] and x.shape[-1] == y.shape[-1]
    require(agree, f"leading dimensions and row length of {x}", y)
    return TensorType(DType.I64, (*x.shape[:-1], y.shape[-2]))


def fold_sum(left: int, right: int) -> int:
    """Add two words, wrapping."""
    return left + right & WORD


def _signed(word: int) -> int:
    return (word ^ 1 << 31) - (1 << 31)


def _argmax_word(block: Block) -> int:
    """Bits of the winning element, then its index in the whole row."""
    row = block.values[0]
    index = reference.argmax(row)
    return floats.canonical(row[index]) << 32 | block.start + index


def _fold_argmax(left: int, right: int) -> int:
    """The first NaN, otherwise the larger value, otherwise the lower index; `left` precedes `right`."""
    a, b = left >> 32, right >> 32
    later_wins = not floats.is_nan(a) and (floats.is_nan(b) or floats.lt(a, b))
    return right if later_wins else left


REDUCTIONS = (
    reduction(
        Op.EXPONENT,
        _infer_row(DType.F32, DType.I32),
        lambda _, xs: rows.exponent(xs[0]),
        lambda block: to_bits(reference.exponent(block.values[0]), DType.I32),
        lambda left, right: max(left, right, key=_signed),
    ),
    reduction(
        Op.DOT,
        _infer_dot,
        lambda _, xs: contract.dot(xs[0], xs[1]),
        lambda block: to_bits(reference.dot(*block.values), DType.I64),
        fold_sum,
        operations=_two_a_term,
    ),
    reduction(
        Op.SUM,
        _infer_row(DType.I64, DType.I64),
        lambda _, xs: reductions.sum_i64(xs[0]),
        lambda block: to_bits(reference.sum_i64(block.values[0]), DType.I64),
        fold_sum,
    ),
    reduction(
        Op.MAX,
        _infer_row(DType.F32, DType.F32),
        lambda _, xs: reductions.max_f32(xs[0]),
        lambda block: reference.max_f32(block.values[0]),
        floats.maximum,
    ),
    reduction(
        Op.ARGMAX,
        _infer_row(DType.F32, DType.I32),
        lambda _, xs: reductions.argmax(xs[0]),
        _argmax_word,
        _fold_argmax,
    ),
)
