"""What a program costs, from the program alone: it prices a task, sizes a stake and decides whether a device fits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from protocol.program.liveness import releases
from protocol.program.opcodes import Op
from protocol.program.primitives import PRIMITIVES
from protocol.program.program import Program


@dataclass(frozen=True, slots=True)
class Cost:
    """`operations`: scalar operations (a product and an addition of a `dot` are two), callees included.

    `peak_bytes`: most canonical bytes alive at once in fast execution without fused kernels, inputs included. Kernels
    may need a small multiple of it for their own wider intermediates.
    `traced_bytes`: bytes of all values of the frame and of all frames below it, what a full trace hashes.
    """

    operations: int
    peak_bytes: int
    traced_bytes: int


@lru_cache(maxsize=1024)
def cost(program: Program) -> Cost:
    """The cost of one run of a checked program."""
    operations = traced = 0
    given = sum(type_.nbytes for type_ in program.inputs)
    live, peak = given, given
    sizes: dict[int, int] = {}
    for number, freed in enumerate(releases(program)):
        instruction = program.instructions[number]
        made = sum(type_.nbytes for type_ in instruction.results)
        traced += made
        # An `input` is held by the caller already; `given` counts it once.
        owned = 0 if instruction.op is Op.INPUT else made
        inside = 0
        if instruction.op is Op.CALL:
            callee = program.callee(number)
            below = cost(callee)
            operations += below.operations
            traced += below.traced_bytes
            inside = below.peak_bytes - sum(type_.nbytes for type_ in callee.inputs)
        elif instruction.op in PRIMITIVES:
            operations += PRIMITIVES[instruction.op].operations(instruction)
        peak = max(peak, live + max(owned, inside))
        for leaf, type_ in zip(instruction.leaves, instruction.results, strict=True):
            sizes[leaf] = 0 if instruction.op is Op.INPUT else type_.nbytes
        live += owned - sum(sizes[leaf] for leaf in freed)
    return Cost(operations, peak, traced)
