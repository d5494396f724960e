"""`philox`: words of Philox4x32-10, opcode 0x0901 of encoding.md section 3; arithmetic.md section 7, "random"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch import Tensor

from protocol.numerics.philox import philox
from protocol.numerics.reference.philox import word
from protocol.numerics.types import DType
from protocol.program import attributes as attrs
from protocol.program.instruction import Instruction
from protocol.program.opcodes import Op
from protocol.program.primitives.base import (
    Load,
    Primitive,
    Read,
    Types,
    require,
    require_count,
    require_declared,
    require_dtype,
)
from protocol.program.types import TensorType

OPERATIONS_PER_WORD = 20
"""Estimate for one word. Four words take ten rounds, each with two products and some exclusive-ors."""


def _infer(operands: Types, attributes: bytes, declared: TensorType | None) -> TensorType:
    attrs.decode_index(attributes)
    require_count(operands, 2)
    key, step = operands
    require_dtype(key, (DType.U32,), "a key")
    require(key.shape == (2,), "a key of shape (2,)", key)
    require_dtype(step, (DType.U32,), "a step")
    require(step.elements == 1, "a step of one element", step)
    result = require_declared(declared)
    require(result.dtype is DType.U32, "a result of type u32", result)
    return result


def _evaluate(instruction: Instruction, operands: Sequence[Tensor]) -> Tensor:
    stream = attrs.decode_index(instruction.attributes)
    return philox(operands[0], operands[1], stream, instruction.result.shape)


def _element(instruction: Instruction, element: int, load: Load) -> int:
    stream = attrs.decode_index(instruction.attributes)
    return word((load(0, 0), load(0, 1)), load(1, 0), stream, element)


def _reads(_instruction: Instruction, _element: int, _block: int, _load: Load) -> Iterator[Read]:
    yield Read(0, 0, 2)
    yield Read(1, 0)


def _operations(instruction: Instruction) -> int:
    return OPERATIONS_PER_WORD * instruction.result.elements


RANDOM = (Primitive(Op.PHILOX, _infer, _evaluate, _element, _reads, _operations),)
