"""What the registry knows about one primitive, and the small checks that its rules share.

Three meanings of one primitive stand side by side so that tests can hold them against each other: `infer` (types),
`evaluate` (torch) and `element` (plain integers, one element, what the chain computes).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor

from protocol.numerics.reference.integers import wrap
from protocol.numerics.types import DType
from protocol.program.errors import RuleError
from protocol.program.instruction import Instruction
from protocol.program.opcodes import Op
from protocol.program.types import TensorType

Types = Sequence[TensorType]

Load = Callable[[int, int], int]
"""`load(operand, flat index)` gives the canonical bits of one element as an unsigned integer."""


@dataclass(frozen=True, slots=True)
class Read:
    """Elements `first … first + count - 1` (flat) of operand number `operand`; they lie in one chunk."""

    operand: int
    first: int
    count: int = 1


def _one_per_result(instruction: Instruction) -> int:
    return instruction.result.elements


@dataclass(frozen=True)
class Primitive:
    """One registry entry.

    `infer(operand types, attributes, declared)` is the result type, or a `RuleError`/`EncodingError`; `declared` is the
    type that the instruction states, used by the primitives whose operands do not fix it, ignored by the others.
    `evaluate(instruction, operands)` is the result as a tensor of that type; operands have the instruction's types.
    `element(instruction, flat index, load)` is the bits of one element of the result.
    `reads(instruction, flat index, block, load)` yields what that element (of that block) needs, in operand order.
    `operations(instruction)` counts scalar operations.
    """

    op: Op
    infer: Callable[[Types, bytes, TensorType | None], TensorType]
    evaluate: Callable[[Instruction, Sequence[Tensor]], Tensor]
    element: Callable[[Instruction, int, Load], int]
    reads: Callable[[Instruction, int, int, Load], Iterator[Read]]
    operations: Callable[[Instruction], int] = _one_per_result


@dataclass(frozen=True, kw_only=True)
class Reduction(Primitive):
    """A primitive along rows: its element folds one 64-bit word per block (encoding.md, "Block results").

    `blocks(instruction)` is the number of blocks of a row, 1 when the row fits a chunk. A block that cannot matter to
    an element reads nothing.
    `block_result(instruction, flat index, block, load)` is the word of one block.
    `fold(word, word)` joins two, in block order; `finish(word)` gives the element's bits.
    """

    blocks: Callable[[Instruction], int]
    block_result: Callable[[Instruction, int, int, Load], int]
    fold: Callable[[int, int], int]
    finish: Callable[[int], int]


def require(condition: bool, expected: str, got: object) -> None:
    """Raise `RuleError` unless the condition holds."""
    if not condition:
        raise RuleError(expected, str(got))


def require_count(operands: Types, count: int) -> None:
    """Exactly `count` operands."""
    require(len(operands) == count, f"{count} operands", len(operands))


def require_dtype(operand: TensorType, allowed: Sequence[DType], what: str = "an operand") -> None:
    """The operand's element type is one of `allowed`."""
    names = ", ".join(dtype.name.lower() for dtype in allowed)
    require(operand.dtype in allowed, f"{what} of type {names}", operand)


def require_declared(declared: TensorType | None) -> TensorType:
    """The declared result type; raises `RuleError` when an instruction has none."""
    if declared is None:
        raise RuleError("a declared result type", "none")
    return declared


def load_value(instruction: Instruction, operand: int, element: int, load: Load) -> int:
    """One element of an operand as `numerics.reference` holds it: signed where its type is, f32 as its bits."""
    return wrap(load(operand, element), instruction.operands[operand].type.dtype)


def to_bits(value: int, dtype: DType) -> int:
    """A value of `numerics.reference` as unsigned bits of the type's width."""
    return int(value) & ((1 << dtype.width) - 1)
