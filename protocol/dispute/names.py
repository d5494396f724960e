"""Readable names for the frames, instructions, elements and bits of a game, from the task's program.

Names of callees come from the bundle's hints, which are not committed. So the names are for display only.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from protocol.numerics.types import DType
from protocol.program.instruction import Instruction
from protocol.program.program import Program
from protocol.program.types import TensorType

WORD = TensorType(DType.I64, ())
"""Type of one block's result in a reduction: 64 bits."""


class Names:
    """Looks up frames and instructions by the numbers that a game's events give."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def frame(self, calls: Sequence[int]) -> Program:
        """The program that runs in the frame to which these call instructions lead."""
        program = self._program
        for n in calls:
            program = program.callee(n)
        return program

    def path(self, calls: Sequence[int]) -> list[str]:
        """Names of the frames on the path, starting with the step."""
        return [self.frame(calls[:depth]).name for depth in range(len(calls) + 1)]

    def instruction(self, calls: Sequence[int], n: int) -> Instruction:
        """Instruction n of a frame."""
        return self.frame(calls).instructions[n]


def position(type_: TensorType, element: int) -> list[int]:
    """Indices of the element with flat index `element`, outermost first."""
    indices: list[int] = []
    for size in reversed(type_.shape):
        element, index = divmod(element, size)
        indices.insert(0, index)
    return indices


def bits(type_: TensorType, value: int) -> str:
    """An element's bits in hexadecimal, padded to the width of its type."""
    width = 2 * type_.dtype.itemsize
    return f"0x{value & ((1 << 4 * width) - 1):0{width}x}"


def number(type_: TensorType, value: int) -> str:
    """The number that an element's bits represent."""
    size = type_.dtype.itemsize
    data = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    if type_.dtype is DType.F32:
        return f"{struct.unpack('<f', data)[0]:.9g}"
    return str(int.from_bytes(data, "little", signed=type_.dtype in (DType.I32, DType.I64)))
