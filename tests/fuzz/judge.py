"""A judge in Python: it does what `Evidence` and the arbiter do with the openings of one element (dispute.md
sections 4 and 5).

It knows only a program id and a trace root. It checks the proofs of all that is opened to it, and reads only
opened chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from protocol.commitments.proofs import verify_inclusion
from protocol.dispute.openings import ChunkOpening, InstructionOpening, Leaf
from protocol.numerics.reference import floats
from protocol.numerics.types import DType
from protocol.program.instruction import Instruction
from protocol.program.primitives import PRIMITIVES, Load, Reduction
from protocol.program.program import ProgramOpening
from protocol.program.types import CHUNK_BYTES, TensorType


@dataclass(frozen=True)
class Judge:
    """The judge of one claimed trace of one program."""

    program: bytes
    trace: bytes

    def element(
        self,
        opened: InstructionOpening,
        element: int,
        operands: Sequence[Leaf],
        chunks: Sequence[ChunkOpening],
        value: Leaf,
        claimed: ChunkOpening,
    ) -> tuple[int, int]:
        """Claimed and computed bits of an element that is not split. Raises `ProofError` for a false path,
        and AssertionError for other false openings.
        """
        instruction, load = self._opened(opened, operands, chunks)
        return (
            self.claimed(opened, element, value, claimed),
            PRIMITIVES[instruction.op].element(instruction, element, load),
        )

    def block(
        self,
        opened: InstructionOpening,
        element: int,
        block: int,
        operands: Sequence[Leaf],
        chunks: Sequence[ChunkOpening],
    ) -> int:
        """The word of one block of a reduction's element."""
        instruction, load = self._opened(opened, operands, chunks)
        primitive = PRIMITIVES[instruction.op]
        assert isinstance(primitive, Reduction)
        return primitive.block_result(instruction, element, block, load)

    def claimed(self, opened: InstructionOpening, element: int, value: Leaf, claimed: ChunkOpening) -> int:
        """The bits of an element as the trace has them, canonical or not."""
        instruction = self._instruction(opened)
        type_ = instruction.result
        assert 0 <= element < type_.elements
        assert claimed.number == type_.chunk_of(element)
        self._require_chunk(instruction.first, opened.program[2], type_, value, claimed)
        at = element * type_.dtype.itemsize % CHUNK_BYTES
        return int.from_bytes(claimed.data[at : at + type_.dtype.itemsize], "little")

    def _instruction(self, opened: InstructionOpening) -> Instruction:
        program = ProgramOpening(*opened.program)
        assert program.id == self.program
        verify_inclusion(program.root, program.instructions, opened.n, opened.data, opened.path)
        return Instruction.decode(opened.data)

    def _opened(
        self, opened: InstructionOpening, operands: Sequence[Leaf], chunks: Sequence[ChunkOpening]
    ) -> tuple[Instruction, Load]:
        instruction = self._instruction(opened)
        assert len(operands) == len(instruction.operands)
        for chunk in chunks:
            operand = instruction.operands[chunk.operand]
            self._require_chunk(operand.leaf, opened.program[2], operand.type, operands[chunk.operand], chunk)
        data = {(chunk.operand, chunk.number): chunk.data for chunk in chunks}

        def load(operand: int, element: int) -> int:
            type_ = instruction.operands[operand].type
            at = element * type_.dtype.itemsize % CHUNK_BYTES
            chunk = data[operand, type_.chunk_of(element)]
            return canonical(int.from_bytes(chunk[at : at + type_.dtype.itemsize], "little"), type_.dtype)

        return instruction, load

    def _require_chunk(
        self, leaf: int, leaves: int, type_: TensorType, value: Leaf, chunk: ChunkOpening
    ) -> None:
        verify_inclusion(self.trace, leaves, leaf, value.value, value.path)
        verify_inclusion(value.value, type_.chunks, chunk.number, chunk.data, chunk.path)


def canonical(bits: int, dtype: DType) -> int:
    """The canonical form of an element, as a load gives it (encoding.md section 1)."""
    if dtype is DType.F32:
        return floats.canonical(bits)
    return int(bits != 0) if dtype is DType.BOOL else bits
