"""The contract's structs for openings, as tuples in ABI order (encoding.md section 6, Openings.sol)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from protocol.commitments import Tree, chunk, tensor_tree
from protocol.commitments.hashing import BytesLike

if TYPE_CHECKING:
    from protocol.program.program import Program


class Node(NamedTuple):
    """A node of a tree with its siblings up to the root, bottom first."""

    lo: int
    size: int
    hash: bytes
    path: list[bytes]


class Leaf(NamedTuple):
    """A 32-byte leaf with its siblings, bottom first. The context determines the leaf's index, and where the
    path ends.
    """

    value: bytes
    path: list[bytes]


class InstructionOpening(NamedTuple):
    """Instruction `n` of the program with a given id. `program` is the preimage of the id: (instruction root,
    number of instructions, number of trace leaves, signature hash).
    """

    program: tuple[bytes, int, int, bytes]
    n: int
    data: bytes
    path: list[bytes]


class ChunkOpening(NamedTuple):
    """Chunk `number` of an operand's value, or of a claimed result. `operand` is the operand's index, or 0
    for a claimed result.
    """

    operand: int
    number: int
    data: bytes
    path: list[bytes]


NO_LEAF = Leaf(bytes(32), [])
NO_INSTRUCTION = InstructionOpening((bytes(32), 0, 0, bytes(32)), 0, b"", [])


def open_leaf(tree: Tree, index: int, value: bytes) -> Leaf:
    """Open leaf `index` of a tree of 32-byte leaves. `value` is the leaf's data."""
    return Leaf(value, tree.inclusion_path(index))


def open_program(program: Program) -> InstructionOpening:
    """Open only a program's preimage, without an instruction. The preimage tells the contract the size of a trace."""
    of = program.opening
    return InstructionOpening((of.root, of.instructions, of.trace_leaves, of.signature), 0, b"", [])


def open_instruction(program: Program, n: int) -> InstructionOpening:
    """Open instruction n of a program."""
    opened = program.open_instruction(n)
    return open_program(program)._replace(n=n, data=opened.data, path=list(opened.path))


def open_chunk(operand: int, index: int, value: BytesLike) -> ChunkOpening:
    """Open chunk `index` of a value, given its canonical bytes."""
    return ChunkOpening(operand, index, chunk(value, index), tensor_tree(value).inclusion_path(index))
