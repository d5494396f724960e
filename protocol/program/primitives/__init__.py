"""The registry of primitives.

An entry has a typing rule, an evaluation in torch and a meaning in plain integers.

`PRIMITIVES` has every opcode except `input`, `output` and `call`, which move whole values and are handled by
the code that runs programs. `chunks_needed` lists the chunks that a proof about one element must open.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from protocol.program.instruction import Instruction
from protocol.program.opcodes import Op
from protocol.program.primitives.base import Load, Primitive, Read, Reduction
from protocol.program.primitives.broadcast import BROADCAST
from protocol.program.primitives.movement import MOVEMENT
from protocol.program.primitives.partial_sums import PARTIAL_SUMS
from protocol.program.primitives.random import RANDOM
from protocol.program.primitives.reductions import REDUCTIONS

PRIMITIVES: Mapping[Op, Primitive] = MappingProxyType(
    {primitive.op: primitive for primitive in (*MOVEMENT, *BROADCAST, *REDUCTIONS, *PARTIAL_SUMS, *RANDOM)}
)


def chunks_needed(instruction: Instruction, element: int, block: int, load: Load) -> list[tuple[int, int]]:
    """The chunks that one element of the result needs, in operand order. Each is a pair (operand, chunk
    index).

    For a reduction, these are the chunks of one block. `load` is called only if a value decides what is read,
    such as the index of `gather` or the condition of `select`.
    """
    return [
        (read.operand, instruction.operands[read.operand].type.chunk_of(read.first))
        for read in PRIMITIVES[instruction.op].reads(instruction, element, block, load)
    ]


__all__ = ["PRIMITIVES", "Load", "Primitive", "Read", "Reduction", "chunks_needed"]
