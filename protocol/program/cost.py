"""A program's cost, which determines prices, stakes, clocks and whether a device has enough memory.

The cost follows from the program alone. Its unit, an operation, is one multiply-add of integers: about half a
nanosecond on a core. Other operations are weighted by the time that they take in eager execution (`WEIGHTS`,
measured on one core, each accurate within a factor of four). No program may take much longer than its cost
says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from protocol.program.instruction import Instruction
from protocol.program.kept import kept
from protocol.program.liveness import releases
from protocol.program.opcodes import Op
from protocol.program.primitives import PRIMITIVES
from protocol.program.program import Program

DISPATCH = 1 << 14
"""Operations charged for the overhead of each instruction: 8 us.

Calls and outputs are charged too; otherwise nested empty programs could run for ever at no cost.
"""

HASHED = 7
"""Operations to hash a byte: 2 x 10^9 operations per second, divided by 300 MB per second (dispute.md section 6)."""

WEIGHTS: Mapping[Op, int] = {
    **dict.fromkeys((Op.STRIDED, Op.CONCAT, Op.PAD, Op.SELECT, Op.LT, Op.LE, Op.DIV), 4),
    **dict.fromkeys((Op.MINIMUM, Op.MAXIMUM), 4),
    **dict.fromkeys((Op.GATHER, Op.SQRT, Op.ARGMAX, Op.SCATTER_SUM), 8),
    **dict.fromkeys((Op.SCALE, Op.QUANTISE), 16),
    **dict.fromkeys((Op.SHL, Op.SHR, Op.MULHI, Op.TO_FIXED), 24),
    Op.CAST: 32,
    Op.ROUND_SCALED: 48,
}
"""Factors by which the `Primitive.operations` of these opcodes are multiplied. Other opcodes have weight 1."""

ROW = 16
"""Operations added for each element of the result of a reduction or a `dot`, because the row behind such an
element may itself have only one element. For a `dot`, the same number is added for each element of the
operands, because possibly each of these elements is used only once.
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one run of a program, callees included.

    A trace in a game hashes all values of the frames on one path. `operations` is never less than the cost of
    this hashing. A task's terms state the `operations` of its step, so the terms alone also bound the cost of
    the hashing.

    `peak_bytes` is the largest number of bytes that are in use at the same time, in fast execution without
    fused kernels. It counts the canonical bytes of live values, inputs included. While a `dot` runs, it also
    counts the padding of the packed operands. An output lives from its instruction to the end of its frame.
    With temporaries, primitives and kernels need up to five times as much (`protocol.tasks.bundles.limits`).

    `traced_bytes` are the bytes that a full trace hashes: those of all values of the frame and of all frames
    below it.

    The other fields are for games, which trace one path of frames (`protocol.tasks.owed.Traces`). Each field
    is the maximum over all paths; two fields may have their maxima on different paths. `eager_operations` are
    the operations of the frames' own instructions, which a trace runs one by one. `called_operations` are the
    operations of the frames' calls. If `operations` had to be raised to the cost of hashing,
    `called_operations` are scaled up by the same factor, so that calls take the same share of a step's time.
    `path_bytes` are the bytes of the frames' values, and `value_bytes` the bytes of the largest value of any
    frame.
    """

    operations: int
    peak_bytes: int
    traced_bytes: int
    eager_operations: int
    called_operations: int
    path_bytes: int
    value_bytes: int


@kept
def cost(program: Program) -> Cost:
    """The cost of one run of a checked program."""
    frame = _frame(program, {})
    operations = max(frame.operations, HASHED * frame.path_bytes)
    called = -(-frame.called_operations * operations // max(1, frame.operations))
    return replace(frame, operations=operations, called_operations=called)


@kept
def run_operations(program: Program) -> int:
    """The operations that one run of a checked program performs, without regard to hashing.

    They are the sum over the program's instructions and calls. `cost(program).operations`, in contrast, is
    never less than the cost of hashing the values.
    """
    return _frame(program, {}).operations


def _frame(program: Program, known: dict[bytes, Cost]) -> Cost:
    """The cost of a frame. `known` caches results by program id, so that each program is measured once."""
    if program.id not in known:
        known[program.id] = _measured(program, known)
    return known[program.id]


def _measured(program: Program, known: dict[bytes, Cost]) -> Cost:
    own = below_traced = 0
    eager = called = 0  # operations of the frame's own instructions, and of its calls
    below_eager = below_called = below_bytes = 0  # the most of one callee's path
    largest = 0
    given = sum(type_.nbytes for type_ in program.inputs)
    live, peak = given, given
    sizes: dict[int, int] = {}
    held: set[int] = set()  # leaves that are outputs, which live to the frame's end
    for number, freed in enumerate(releases(program)):
        instruction = program.instructions[number]
        made = sum(type_.nbytes for type_ in instruction.results)
        own += made
        largest = max([largest, *(type_.nbytes for type_ in instruction.results)])
        # The caller holds inputs; `given` counts them once.
        owned = 0 if instruction.op is Op.INPUT else made
        inside = 0
        eager += DISPATCH
        if instruction.op is Op.CALL:
            callee = program.callee(number)
            below = _frame(callee, known)
            called += below.operations
            below_traced += below.traced_bytes
            below_eager = max(below_eager, below.eager_operations)
            below_called = max(below_called, below.called_operations)
            below_bytes = max(below_bytes, below.path_bytes)
            largest = max(largest, below.value_bytes)
            inside = below.peak_bytes - sum(type_.nbytes for type_ in callee.inputs)
        elif instruction.op in PRIMITIVES:
            eager += _weighed(instruction)
            inside = owned + _packed(instruction)
        peak = max(peak, live + max(owned, inside))
        for leaf, type_ in zip(instruction.leaves, instruction.results, strict=True):
            sizes[leaf] = 0 if instruction.op is Op.INPUT else type_.nbytes
        if instruction.op is Op.OUTPUT:
            held.add(instruction.operands[0].leaf)
        live += owned - sum(sizes[leaf] for leaf in freed if leaf not in held)
    return Cost(
        eager + called,
        peak,
        own + below_traced,
        eager + below_eager,
        called + below_called,
        own + below_bytes,
        largest,
    )


def _weighed(instruction: Instruction) -> int:
    counted = WEIGHTS.get(instruction.op, 1) * PRIMITIVES[instruction.op].operations(instruction)
    if instruction.op in (Op.EXPONENT, Op.ARGMAX, Op.MAX, Op.SUM, Op.SCATTER_SUM, Op.DOT):
        counted += ROW * instruction.result.elements
    if instruction.op is Op.DOT:
        counted += ROW * sum(type_.elements for type_ in instruction.operand_types)
    return counted


PANEL_BYTES = 6
"""Bytes that a product kernel needs for each element that it packs: at most three planes of 16 bits."""
PANEL_ROWS = 32
"""Rows of a packed panel; a single row takes as much memory as a full panel."""


def _packed(instruction: Instruction) -> int:
    """The bytes of padding in a packed `dot`. The padding fills up the last panel of each operand. If the
    `dot` is a batch of products, only the padding of one product counts.

    0 for other primitives.
    """
    if instruction.op is not Op.DOT:
        return 0
    x, y = instruction.operand_types
    absent = sum(-type_.shape[-2] % PANEL_ROWS for type_ in (x, y))
    return PANEL_BYTES * absent * x.shape[-1]
