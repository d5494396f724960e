"""The judge of one frame, in Python. It applies the same rules to openings as `Evidence` and the arbiter
(dispute.md sections 4 and 5).

The judge knows only a program's opening and a trace root. It checks the proof of everything that is opened,
and reads only opened chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from protocol.commitments import chunk_length, leaf_hash, root_from_path, verify_inclusion
from protocol.commitments.geometry import siblings
from protocol.dispute.openings import NO_LEAF, ChunkOpening, InstructionOpening, Leaf
from protocol.numerics.reference import floats
from protocol.numerics.types import DType
from protocol.program.instruction import Instruction
from protocol.program.primitives import PRIMITIVES, Load, Reduction
from protocol.program.program import ProgramOpening
from protocol.program.types import CHUNK_BYTES, TensorType


@dataclass(frozen=True)
class Judge:
    """The judge of one claimed trace of one program.

    Its methods raise `ProofError` for a false path, and AssertionError for other false openings.
    """

    program: ProgramOpening
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
        """The claimed bits and the computed bits of an element that is not split. The leaf `value` must be
        proved up to the trace's root. The path of each opened operand must end at a sibling on the path of
        `value`.
        """
        bits = self.claimed(opened, element, value, claimed)
        instruction = self.instruction(opened)
        load = self._load(instruction, instruction.first, value, operands, chunks)
        return bits, PRIMITIVES[instruction.op].element(instruction, element, load)

    def block(
        self,
        opened: InstructionOpening,
        element: int,
        block: int,
        operands: Sequence[Leaf],
        chunks: Sequence[ChunkOpening],
    ) -> int:
        """The word of one block of a reduction's element. The operand of the first chunk is proved up to the
        trace's root. The path of any other opened operand ends at a sibling on this first path.
        """
        instruction = self.instruction(opened)
        anchor, first = 0, NO_LEAF
        if chunks:  # a block after the element of a prefix sum reads nothing
            operand = chunks[0].operand
            anchor, first = instruction.operands[operand].leaf, operands[operand]
            self.require_leaf(anchor, first)
        load = self._load(instruction, anchor, first, operands, chunks)
        return reduction(instruction).block_result(instruction, element, block, load)

    def claimed(self, opened: InstructionOpening, element: int, value: Leaf, claimed: ChunkOpening) -> int:
        """The bits of an element as the trace has them, canonical or not."""
        instruction = self.instruction(opened)
        type_ = instruction.result
        assert 0 <= element < type_.elements
        assert claimed.number == type_.chunk_of(element)
        self.require_leaf(instruction.first, value)
        _require_chunk(value, type_, claimed)
        return _raw(claimed.data, element, type_.dtype)

    def instruction(self, opened: InstructionOpening) -> Instruction:
        """The opened instruction, which must be proved to belong to the program."""
        assert ProgramOpening(*opened.program) == self.program
        verify_inclusion(self.program.root, self.program.instructions, opened.n, opened.data, opened.path)
        return Instruction.decode(opened.data)

    def require_leaf(self, index: int, leaf: Leaf) -> None:
        """Require that the trace's leaf with number `index` is proved up to the trace's root."""
        verify_inclusion(self.trace, self.program.trace_leaves, index, leaf.value, leaf.path)

    def _load(
        self,
        instruction: Instruction,
        anchor: int,
        proved: Leaf,
        operands: Sequence[Leaf],
        chunks: Sequence[ChunkOpening],
    ) -> Load:
        """A function that reads elements of the opened chunks. The leaf of each chunk's operand must be the
        leaf `anchor`, or be proved up to a sibling on that leaf's path.
        """
        needed = instruction.operands
        data = {(chunk.operand, chunk.number): chunk.data for chunk in chunks}
        assert len(data) == len(chunks)
        for k, (leaf, operand) in enumerate(zip(operands, needed, strict=True)):
            if any(chunk.operand == k for chunk in chunks):
                _require_beside(self.program.trace_leaves, anchor, proved, operand.leaf, leaf)
            else:
                assert leaf == NO_LEAF
        for chunk in chunks:
            _require_chunk(operands[chunk.operand], needed[chunk.operand].type, chunk)

        def load(operand: int, element: int) -> int:
            type_ = needed[operand].type
            bits = _raw(data[operand, type_.chunk_of(element)], element, type_.dtype)
            return canonical(bits, type_.dtype)

        return load


def reduction(instruction: Instruction) -> Reduction:
    """The rules of an instruction that is a reduction."""
    primitive = PRIMITIVES[instruction.op]
    assert isinstance(primitive, Reduction)
    return primitive


def canonical(bits: int, dtype: DType) -> int:
    """The canonical form of an element, as a load gives it (encoding.md section 1)."""
    if dtype is DType.F32:
        return floats.canonical(bits)
    return int(bits != 0) if dtype is DType.BOOL else bits


def _raw(chunk: bytes, element: int, dtype: DType) -> int:
    at = element * dtype.itemsize % CHUNK_BYTES
    return int.from_bytes(chunk[at : at + dtype.itemsize], "little")


def _require_chunk(value: Leaf, type_: TensorType, opening: ChunkOpening) -> None:
    verify_inclusion(value.value, type_.chunks, opening.number, opening.data, opening.path)
    assert len(opening.data) == chunk_length(type_.nbytes, opening.number)


def _require_beside(leaves: int, anchor: int, proved: Leaf, index: int, leaf: Leaf) -> None:
    """Require that the leaf with number `index` is the anchor, or that the leaf's path ends at a sibling on
    the anchor's path: the sibling whose subtree contains the leaf.
    """
    if index == anchor:
        assert leaf.value == proved.value
        return
    above = siblings(leaves, anchor, 1)
    place = next(i for i, (lo, size) in enumerate(above) if lo <= index < lo + size)
    lo, size = above[place]
    found = root_from_path(size, index - lo, 1, leaf_hash(leaf.value), leaf.path)
    assert found == proved.path[place]
