"""Registry entries of primitives, and the checks that their rules share.

An entry defines its primitive three times, so that tests can compare the definitions: `infer` (types),
`evaluate` (torch) and `element` (one element in plain integers, as the chain computes it).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor

from protocol.commitments.hashing import BytesLike
from protocol.numerics.reference.integers import wrap
from protocol.numerics.types import DType
from protocol.program.errors import RuleError
from protocol.program.instruction import Instruction
from protocol.program.opcodes import Op
from protocol.program.types import TensorType

Types = Sequence[TensorType]

Load = Callable[[int, int], int]
"""`load(operand, flat index)` returns the canonical bits of one element as an unsigned integer."""


@dataclass(frozen=True, slots=True)
class Read:
    """`count` elements of one operand, starting at flat index `first`. `operand` is the operand's number. All
    elements that a block needs from one operand are in one chunk.
    """

    operand: int
    first: int
    count: int = 1


def _one_per_result(instruction: Instruction) -> int:
    return instruction.result.elements


@dataclass(frozen=True)
class Primitive:
    """One registry entry.

    - `infer(operand types, attributes, declared)` returns the result type, or raises `RuleError` or
      `EncodingError`. `declared` is the result type that the instruction states; it is used only if the
      operands do not determine the type.
    - `evaluate(instruction, operands)` returns the result as a tensor; operands have the instruction's types.
    - `element(instruction, flat index, load)` returns the bits of one element of the result.
    - `reads(instruction, flat index, block, load)` yields a `Read` for whatever this element depends on, in
      operand order. For a reduction, it yields only the reads of the given block.
    - `operations(instruction)` counts scalar operations.
    """

    op: Op
    infer: Callable[[Types, bytes, TensorType | None], TensorType]
    evaluate: Callable[[Instruction, Sequence[Tensor]], Tensor]
    element: Callable[[Instruction, int, Load], int]
    reads: Callable[[Instruction, int, int, Load], Iterator[Read]]
    operations: Callable[[Instruction], int] = _one_per_result


@dataclass(frozen=True, kw_only=True)
class Reduction(Primitive):
    """A primitive that reduces rows. Each block of a row gives one word, and these words are folded into an
    element (encoding.md section 3, "Block results").

    - `blocks(instruction)` is the number of blocks of a row, 1 if the row fits a chunk. A block that
      cannot affect an element reads nothing.
    - `block_result(instruction, flat index, block, load)` returns the word of one block. This is
      the definition.
    - `part_result(instruction, flat index, lo, hi, values)` returns the word to which the words of
      blocks [lo, hi) fold. It computes with arrays, on many blocks at a time. `values` are the operands'
      canonical bytes.
    - `fold(word, word)` combines two words, in block order; `finish(word)` returns the element's bits.
    """

    blocks: Callable[[Instruction], int]
    block_result: Callable[[Instruction, int, int, Load], int]
    part_result: Callable[[Instruction, int, int, int, Sequence[BytesLike]], int]
    fold: Callable[[int, int], int]
    finish: Callable[[int], int]


def require(condition: bool, expected: str, got: object) -> None:
    """Raise `RuleError` unless the condition holds."""
    if not condition:
        raise RuleError(expected, str(got))


def require_count(operands: Types, count: int) -> None:
    """Raise `RuleError` unless there are exactly `count` operands."""
    require(len(operands) == count, f"{count} operands", len(operands))


def require_dtype(operand: TensorType, allowed: Sequence[DType], what: str = "an operand") -> None:
    """Raise `RuleError` unless the operand's element type is one of `allowed`."""
    names = ", ".join(dtype.name.lower() for dtype in allowed)
    require(operand.dtype in allowed, f"{what} of type {names}", operand)


def require_declared(declared: TensorType | None) -> TensorType:
    """The declared result type; raises `RuleError` if there is none."""
    if declared is None:
        raise RuleError("a declared result type", "none")
    return declared


def load_value(instruction: Instruction, operand: int, element: int, load: Load) -> int:
    """One element of an operand in the form of `numerics.reference`: signed if its type is signed, f32 as bits."""
    return wrap(load(operand, element), instruction.operands[operand].type.dtype)


def to_bits(value: int, dtype: DType) -> int:
    """A value of `numerics.reference` as unsigned bits of the type's width."""
    return int(value) & ((1 << dtype.width) - 1)
