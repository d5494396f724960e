"""Records a program instruction by instruction; `builder` adds the primitives.

Result types come from the same rules that `check` applies, so a recorded program is well typed.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from protocol.numerics.types import DType
from protocol.program import attributes as attrs
from protocol.program.errors import ProgramError, RuleError
from protocol.program.instruction import Instruction, Operand
from protocol.program.opcodes import Op
from protocol.program.primitives import PRIMITIVES
from protocol.program.program import Program
from protocol.program.types import Shape, TensorType


@dataclass(frozen=True, eq=False, slots=True)
class Value:
    """A handle for one trace leaf of the program that `owner` records."""

    owner: Recorder
    leaf: int
    type: TensorType

    @property
    def shape(self) -> Shape:
        """Shape of the value."""
        return self.type.shape

    @property
    def dtype(self) -> DType:
        """Element type of the value."""
        return self.type.dtype


Literal = int | float | bool | bytes


def literal(dtype: DType, value: Literal) -> bytes:
    """Canonical bytes of one element.

    `bytes` are returned unchanged. For f32, the number is rounded, and NaN is made canonical. For integer
    types, a fraction is dropped.

    Raises `RuleError` for a number outside the type's range.
    """
    if isinstance(value, bytes):
        return value
    if dtype is DType.F32:
        if math.isnan(value):
            return bytes.fromhex("0000c07f")
        try:
            return struct.pack("<f", value)
        except OverflowError:
            raise RuleError("a number that f32 can hold", str(value)) from None
    signed = dtype in (DType.I32, DType.I64)
    try:
        whole = int(bool(value)) if dtype is DType.BOOL else int(value)
        return whole.to_bytes(dtype.itemsize, "little", signed=signed)
    except (OverflowError, ValueError):  # ValueError: NaN
        raise RuleError(f"a number that {dtype.name.lower()} can hold", str(value)) from None


class Recorder:
    """Records inputs, constants, calls and outputs. Use `Builder`, which adds the primitives.

    `build` returns the program. If an instruction is rejected, the error names the number that the
    instruction would have had. At most `most` instructions are accepted; any further one is rejected with
    `RuleError`. Without `most`, only `check` limits the number of instructions.
    """

    def __init__(self, name: str = "program", most: int | None = None) -> None:
        self.name = name
        self._most = most
        self._inputs: list[TensorType] = []
        self._outputs: list[TensorType] = []
        self._instructions: list[Instruction] = []
        self._callees: dict[bytes, Program] = {}
        self._constants: dict[tuple[TensorType, bytes], Value] = {}
        self._leaves = 0

    def input(self, type_: TensorType) -> Value:
        """Record the next input of the frame."""
        self._inputs.append(type_)
        return self._append(Op.INPUT, (), (type_,), attrs.encode_index(len(self._inputs) - 1))[0]

    def constant(self, dtype: DType, shape: Sequence[int], value: Literal) -> Value:
        """A tensor whose elements are all `value`. It is recorded only once for each type and value."""
        type_ = TensorType(dtype, tuple(shape))
        data = literal(dtype, value)
        key = (type_, data)
        if key not in self._constants:
            self._constants[key] = self._primitive(Op.CONSTANT, (), data, type_)
        return self._constants[key]

    def f32(self, bits: int) -> Value:
        """The rank-0 f32 with this bit pattern."""
        return self.constant(DType.F32, (), bits.to_bytes(4, "little"))

    def i32(self, value: int) -> Value:
        """A rank-0 i32."""
        return self.constant(DType.I32, (), value)

    def u32(self, value: int) -> Value:
        """A rank-0 u32."""
        return self.constant(DType.U32, (), value)

    def output(self, value: Value) -> None:
        """Make `value` the next output of the frame."""
        self._outputs.append(value.type)
        self._append(Op.OUTPUT, (value,), (), attrs.encode_index(len(self._outputs) - 1))

    def call(self, program: Program, *operands: Value) -> tuple[Value, ...]:
        """Record a call of another program on these operands. Return one value for each of its outputs."""
        given = tuple(operand.type for operand in operands)
        if given != program.inputs:
            expected = ", ".join(map(str, program.inputs))
            raise RuleError(
                f"operands {expected}",
                ", ".join(map(str, given)) or "none",
                instruction=len(self._instructions),
                operation=f"call {program.name}",
            )
        self._callees[program.id] = program
        return self._append(Op.CALL, operands, program.outputs, program.id)

    def build(self) -> Program:
        """The program recorded so far."""
        return Program(
            tuple(self._inputs),
            tuple(self._outputs),
            tuple(self._instructions),
            dict(self._callees),
            self.name,
        )

    def _primitive(
        self, op: Op, operands: Sequence[Value], attributes: bytes = b"", declared: TensorType | None = None
    ) -> Value:
        """Record a primitive. The primitive's rule decides the result type."""
        try:
            result = PRIMITIVES[op].infer([operand.type for operand in operands], attributes, declared)
        except ProgramError as error:
            number = len(self._instructions)
            raise RuleError(error.expected, error.got, instruction=number, operation=op.label) from error
        return self._append(op, operands, (result,), attributes)[0]

    def _append(
        self, op: Op, operands: Sequence[Value], results: Sequence[TensorType], attributes: bytes
    ) -> tuple[Value, ...]:
        for operand in operands:
            if operand.owner is not self:
                raise RuleError(
                    f"values of {self.name}",
                    f"a value of {operand.owner.name}",
                    instruction=len(self._instructions),
                    operation=op.label,
                )
        if self._most is not None and len(self._instructions) >= self._most:
            expected, got = f"at most {self._most} instructions", f"more, in {self.name}"
            raise RuleError(expected, got, instruction=len(self._instructions), operation=op.label)
        read = tuple(Operand(operand.leaf, operand.type) for operand in operands)
        self._instructions.append(Instruction(op, self._leaves, read, tuple(results), attributes))
        values = tuple(Value(self, self._leaves + k, type_) for k, type_ in enumerate(results))
        self._leaves += len(values)
        return values
