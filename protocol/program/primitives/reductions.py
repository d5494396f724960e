"""Reductions along the last axis: `exponent`, `dot`, `sum`, `max`, `argmax`, by blocks of one chunk.

The 64-bit result of a block is called a word. It is defined on Python integers, element by element, as the
chain computes it. The solver computes the words of a long row with numpy, because a row may have 2^30
elements. Names that `partial_sums` also needs are public. See encoding.md section 3 ("Rows", "Block
results"); arithmetic.md sections 3 to 5; dispute.md section 5 (split).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from protocol.commitments.hashing import BytesLike
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

PIECE: Final = 1 << 10
"""Number of blocks computed at once. This is 1 MiB of each operand, so that a long row needs little memory
besides its own bytes.
"""

Reads = Callable[[Instruction, int, int, int], Iterator[Read]]
"""`reads(instruction, flat index, lo, hi)` yields the `Read`s of blocks [lo, hi) of one element."""

Array = NDArray[Any]

STORED: Final[Mapping[DType, str]] = {DType.F32: "<u4", DType.I32: "<i4", DType.I64: "<i8"}
"""For each type that reductions take: the numpy type in which its canonical bytes are read. f32 is read as bits."""


@dataclass(frozen=True, slots=True)
class Block:
    """The input of a block result: the values that the block reads, and the block's start in the row."""

    instruction: Instruction
    element: int
    start: int
    values: Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class Piece:
    """The input for some consecutive blocks, as in `Block`. The values are arrays, read as `STORED` says."""

    instruction: Instruction
    element: int
    start: int
    values: Sequence[Array]


Word = Callable[[Block], int]
"""Computes the 64-bit result of one block."""
PieceWord = Callable[[Piece], int]
"""Computes one word for a piece: the fold of the words of its blocks."""


def require_rows(operand: TensorType) -> None:
    """Raise `RuleError` unless the rows, along the last axis, can be divided into blocks.

    The length of a row in bytes must divide 1,024 or be a multiple of 1,024.
    """
    require(operand.rank >= 1, "an operand of rank 1 or more", operand)
    length = operand.shape[-1] * operand.dtype.itemsize
    aligned = CHUNK_BYTES % length == 0 or length % CHUNK_BYTES == 0
    require(
        aligned, f"rows whose bytes divide or are a multiple of {CHUNK_BYTES}", f"{length} bytes in {operand}"
    )


def block_count(instruction: Instruction) -> int:
    """Number of blocks in a row of the last operand; the instruction reduces along this row."""
    row = instruction.operands[-1].type
    return max(1, row.shape[-1] * row.dtype.itemsize // CHUNK_BYTES)


def block_length(instruction: Instruction) -> int:
    """Number of a row's elements in one block."""
    return instruction.operands[-1].type.shape[-1] // block_count(instruction)


def block_reads(instruction: Instruction, element: int, lo: int, hi: int) -> Iterator[Read]:
    """For each operand, yield the read of blocks [lo, hi) of the row from which the element is computed."""
    length = instruction.operands[0].type.shape[-1]
    count = block_length(instruction)
    for k, row in enumerate(_rows(instruction, element)):
        yield Read(k, row * length + lo * count, (hi - lo) * count)


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
    piece_word: PieceWord,
    fold: Callable[[int, int], int],
    *,
    reads: Reads = block_reads,
    operations: Callable[[Instruction], int] = term_operations,
) -> Reduction:
    """Make a registry entry from the functions that compute the word of a block and of a piece, and from the
    fold of two words.
    """

    def reads_of_block(instruction: Instruction, element: int, block: int, _load: Load) -> Iterator[Read]:
        return reads(instruction, element, block, block + 1)

    def block_result(instruction: Instruction, element: int, block: int, load: Load) -> int:
        values = [
            [load_value(instruction, read.operand, read.first + i, load) for i in range(read.count)]
            for read in reads(instruction, element, block, block + 1)
        ]
        return word(Block(instruction, element, block * block_length(instruction), values))

    def part_result(
        instruction: Instruction, element: int, lo: int, hi: int, values: Sequence[BytesLike]
    ) -> int:
        def piece(at: int) -> Piece:
            arrays = [
                _array(instruction, read, values)
                for read in reads(instruction, element, at, min(at + PIECE, hi))
            ]
            return Piece(instruction, element, at * block_length(instruction), arrays)

        return reduce(fold, (piece_word(piece(at)) for at in range(lo, hi, PIECE)))

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
        reads_of_block,
        operations,
        blocks=block_count,
        block_result=block_result,
        part_result=part_result,
        fold=fold,
        finish=finish,
    )


def _array(instruction: Instruction, read: Read, values: Sequence[BytesLike]) -> Array:
    """The elements of a read, without a copy."""
    dtype = instruction.operands[read.operand].type.dtype
    start = read.first * dtype.itemsize
    return np.frombuffer(values[read.operand], STORED[dtype], read.count, start)


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


def sum_of(x: Array) -> int:
    """The wrapping sum of i64, as a word."""
    return int(x.view("<u8").sum(dtype=np.uint64))


def _signed(word: int) -> int:
    return (word ^ 1 << 31) - (1 << 31)


def _argmax_word(block: Block) -> int:
    """The bits of the winning element, followed by its index in the whole row."""
    row = block.values[0]
    index = reference.argmax(row)
    return floats.canonical(row[index]) << 32 | block.start + index


def _fold_argmax(left: int, right: int) -> int:
    """Return the word of the first NaN; without a NaN, that of the larger value; for equal values, that of
    the lower index. `left` precedes `right`.
    """
    a, b = left >> 32, right >> 32
    later_wins = not floats.is_nan(a) and (floats.is_nan(b) or floats.lt(a, b))
    return right if later_wins else left


def _exponent_piece(piece: Piece) -> int:
    return to_bits(reference.exponent([int((piece.values[0] & floats.MAGNITUDE).max())]), DType.I32)


def _dot_piece(piece: Piece) -> int:
    x, y = piece.values
    return sum_of(x.astype(np.int64) * y)


def _max_piece(piece: Piece) -> int:
    bits = piece.values[0]
    return reference.max_f32([int(bits[_argmax(bits)])])


def _argmax_piece(piece: Piece) -> int:
    bits = piece.values[0]
    index = _argmax(bits)
    return floats.canonical(int(bits[index])) << 32 | piece.start + index


def _argmax(bits: Array) -> int:
    """`reference.argmax` of canonical f32 bits.

    It compares integers, so it tells subnormals apart even if the processor flushes them to zero. Read as
    i32, the bits of floats from +0 on are in the order of the floats, and canonical NaN is the largest
    number. Read as u32, the bits of negative floats are in reverse order.
    """
    signed = bits.view("<i4")
    index = int(np.argmax(signed))
    if signed[index] > 0:
        return index
    return int(np.argmin(bits) if signed[index] < 0 else np.argmax(bits & floats.MAGNITUDE == 0))


REDUCTIONS = (
    reduction(
        Op.EXPONENT,
        _infer_row(DType.F32, DType.I32),
        lambda _, xs: rows.exponent(xs[0]),
        lambda block: to_bits(reference.exponent(block.values[0]), DType.I32),
        _exponent_piece,
        lambda left, right: max(left, right, key=_signed),
    ),
    reduction(
        Op.DOT,
        _infer_dot,
        lambda _, xs: contract.dot(xs[0], xs[1]),
        lambda block: to_bits(reference.dot(*block.values), DType.I64),
        _dot_piece,
        fold_sum,
        operations=_two_a_term,
    ),
    reduction(
        Op.SUM,
        _infer_row(DType.I64, DType.I64),
        lambda _, xs: reductions.sum_i64(xs[0]),
        lambda block: to_bits(reference.sum_i64(block.values[0]), DType.I64),
        lambda piece: sum_of(piece.values[0]),
        fold_sum,
    ),
    reduction(
        Op.MAX,
        _infer_row(DType.F32, DType.F32),
        lambda _, xs: reductions.max_f32(xs[0]),
        lambda block: reference.max_f32(block.values[0]),
        _max_piece,
        floats.maximum,
    ),
    reduction(
        Op.ARGMAX,
        _infer_row(DType.F32, DType.I32),
        lambda _, xs: reductions.argmax(xs[0]),
        _argmax_word,
        _argmax_piece,
        _fold_argmax,
    ),
)
