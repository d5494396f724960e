"""The primitives: one registry entry each, with its types, its torch evaluation and its meaning in plain integers.

`PRIMITIVES[op]` for everything but `input`, `output` and `call`, which move whole values and are the runner's business.
`chunks_needed` says what a proof about one element must open.
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
    """(operand, chunk index) for one element of the result, in operand order; for a reduction, for one of its blocks.

    `load` is asked only where a value decides what is read: `gather` for the index, `select` for the condition.
    """
    return [
        (read.operand, instruction.operands[read.operand].type.chunk_of(read.first))
        for read in PRIMITIVES[instruction.op].reads(instruction, element, block, load)
    ]


__all__ = ["PRIMITIVES", "Load", "Primitive", "Read", "Reduction", "chunks_needed"]
