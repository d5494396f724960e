"""Concatenation of any number of tensors, although an instruction has at most 255 operands and 4,096 bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from protocol.program.builder import Builder, Value
from protocol.program.instruction import MAX_INSTRUCTION_BYTES, MAX_OPERANDS

OPERAND_BYTES = 4
"""The bytes of an encoded operand's leaf. The operand's type follows the leaf and is counted separately."""
OTHER_BYTES = 16
"""Bytes reserved in an instruction for everything except the operands and the result type. The opcode, the
result's leaf, the two counts and the axis take 9 of these bytes.
"""


def concatenated(b: Builder, pieces: Sequence[Value], axis: int = 0) -> Value:
    """One or more tensors concatenated along an axis, by instructions with as many operands as allowed."""
    while len(pieces) > 1:
        pieces = [group[0] if len(group) == 1 else b.concat(group, axis) for group in _groups(pieces)]
    return pieces[0]


def _groups(pieces: Sequence[Value]) -> Iterator[list[Value]]:
    """The pieces in order, in groups that fit one instruction."""
    group: list[Value] = []
    # A result has the rank of the operands, so its type has the same length.
    size = start = OTHER_BYTES + len(pieces[0].type.encode())
    for piece in pieces:
        needed = OPERAND_BYTES + len(piece.type.encode())
        if len(group) == MAX_OPERANDS or size + needed > MAX_INSTRUCTION_BYTES:
            yield group
            group, size = [], start
        group.append(piece)
        size += needed
    yield group
