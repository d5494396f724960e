"""One instruction and its bytes (encoding.md section 3).

Decoding is strict: only the output of `encode` decodes. `check` tests whether the types fit the opcode.
"""

from __future__ import annotations

from dataclasses import dataclass

from protocol.program import codec
from protocol.program.codec import Reader
from protocol.program.errors import EncodingError
from protocol.program.opcodes import Op
from protocol.program.types import TensorType

MAX_OPERANDS = 255
MAX_INSTRUCTION_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of an instruction: a trace leaf of the same frame, and its type."""

    leaf: int
    type: TensorType


@dataclass(frozen=True, slots=True)
class Instruction:
    """A primitive or a call. `first` is the trace leaf of the first result; the other results have the leaves
    after it.
    """

    op: Op
    first: int
    operands: tuple[Operand, ...]
    results: tuple[TensorType, ...]
    attributes: bytes = b""

    @property
    def operand_types(self) -> tuple[TensorType, ...]:
        """The operands' types, in order."""
        return tuple(operand.type for operand in self.operands)

    @property
    def result(self) -> TensorType:
        """The type of the first result; every primitive but `output` has exactly one."""
        return self.results[0]

    @property
    def leaves(self) -> range:
        """The trace leaves of the results."""
        return range(self.first, self.first + len(self.results))

    def encode(self) -> bytes:
        """The bytes.

        Raises `EncodingError` if a number is out of range or there are more than 4,096 bytes.
        """
        data = b"".join(
            (
                codec.u16(self.op),
                codec.u32(self.first),
                codec.u8(len(self.operands)),
                *(codec.u32(operand.leaf) + operand.type.encode() for operand in self.operands),
                codec.u8(len(self.results)),
                *(result.encode() for result in self.results),
                self.attributes,
            )
        )
        if len(data) > MAX_INSTRUCTION_BYTES:
            raise EncodingError(f"an instruction of at most {MAX_INSTRUCTION_BYTES} bytes", f"{len(data)}")
        return data

    @classmethod
    def decode(cls, data: bytes) -> Instruction:
        """Inverse of `encode`. Raises `EncodingError` for too few bytes, more than 4,096 bytes, unknown codes
        and impossible types.
        """
        if len(data) > MAX_INSTRUCTION_BYTES:
            raise EncodingError(f"an instruction of at most {MAX_INSTRUCTION_BYTES} bytes", f"{len(data)}")
        reader = Reader(data)
        code = reader.u16()
        if code not in _CODES:
            raise EncodingError("an opcode of version 1", f"0x{code:04x}")
        first = reader.u32()
        operands = tuple(Operand(reader.u32(), TensorType.read(reader)) for _ in range(reader.u8()))
        results = tuple(TensorType.read(reader) for _ in range(reader.u8()))
        return cls(Op(code), first, operands, results, reader.rest())


_CODES = frozenset(int(op) for op in Op)
