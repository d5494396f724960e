"""A program's cost, from the program alone: it prices a task, sizes a stake and decides whether a device fits.

An operation is what a core does in about half a nanosecond: one addition of an integer product. Other operations are
weighted by their time in eager execution, primitive by primitive, each within a factor of four (measured on one core;
`WEIGHTS`). Clocks and bids depend on it, so a program must not take long and count little.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from protocol.program.instruction import Instruction
from protocol.program.kept import kept
from protocol.program.liveness import releases
from protocol.program.opcodes import Op
from protocol.program.primitives import PRIMITIVES
from protocol.program.program import Program

DISPATCH = 1 << 14
"""Operations of an instruction that does nothing, 8 us: its call, its results' release. Calls and outputs count too;
otherwise a tower of empty programs would run for ever at no cost.
"""

HASHED = 7
"""Operations of hashing a byte: 2 x 10^9 a second against the 300 MB a second of dispute.md section 6."""

WEIGHTS: Mapping[Op, int] = {
    **dict.fromkeys((Op.STRIDED, Op.CONCAT, Op.PAD, Op.SELECT, Op.LT, Op.LE, Op.DIV), 4),
    **dict.fromkeys((Op.MINIMUM, Op.MAXIMUM), 4),
    **dict.fromkeys((Op.GATHER, Op.SQRT, Op.ARGMAX, Op.SCATTER_SUM), 8),
    **dict.fromkeys((Op.SCALE, Op.QUANTISE), 16),
    **dict.fromkeys((Op.SHL, Op.SHR, Op.MULHI, Op.TO_FIXED), 24),
    Op.CAST: 32,
    Op.ROUND_SCALED: 48,
}
"""Operations for each that the primitive counts; 1 by default."""

ROW = 16
"""Operations of each result of a reduction, whose row may be a single element; and of bringing in each operand of a
`dot`, which may be used once."""


@dataclass(frozen=True, slots=True)
class Cost:
    """`operations`: of one run, callees included; at least those of hashing one path of frames of a trace, so that
    three times as long is enough for a segment and the trace of a step (`task.clock`).

    `peak_bytes`: most canonical bytes alive at once in fast execution without fused kernels, inputs included.
    Primitives and kernels need up to five times that with what they make on the way
    (`protocol.tasks.bundles.limits`). `traced_bytes`: bytes of all values of the frame and of all frames below it,
    what a full trace hashes.
    """

    operations: int
    peak_bytes: int
    traced_bytes: int


@dataclass(frozen=True, slots=True)
class _Frame:
    """As `Cost`, and the bytes of the values along the most expensive path of frames."""

    operations: int
    peak_bytes: int
    traced_bytes: int
    line_bytes: int


@kept
def cost(program: Program) -> Cost:
    """The cost of one run of a checked program."""
    frame = _frame(program, {})
    return Cost(max(frame.operations, HASHED * frame.line_bytes), frame.peak_bytes, frame.traced_bytes)


def _frame(program: Program, known: dict[bytes, _Frame]) -> _Frame:
    """`known` holds every program once: thousands that call each other are visited once each."""
    if program.id not in known:
        known[program.id] = _measured(program, known)
    return known[program.id]


def _measured(program: Program, known: dict[bytes, _Frame]) -> _Frame:
    operations = own = below_traced = deepest = 0
    given = sum(type_.nbytes for type_ in program.inputs)
    live, peak = given, given
    sizes: dict[int, int] = {}
    for number, freed in enumerate(releases(program)):
        instruction = program.instructions[number]
        made = sum(type_.nbytes for type_ in instruction.results)
        own += made
        # An `input` is held by the caller already; `given` counts it once.
        owned = 0 if instruction.op is Op.INPUT else made
        inside = 0
        operations += DISPATCH
        if instruction.op is Op.CALL:
            callee = program.callee(number)
            below = _frame(callee, known)
            operations += below.operations
            below_traced += below.traced_bytes
            deepest = max(deepest, below.line_bytes)
            inside = below.peak_bytes - sum(type_.nbytes for type_ in callee.inputs)
        elif instruction.op in PRIMITIVES:
            operations += _weighed(instruction)
            inside = owned + _packed(instruction)
        peak = max(peak, live + max(owned, inside))
        for leaf, type_ in zip(instruction.leaves, instruction.results, strict=True):
            sizes[leaf] = 0 if instruction.op is Op.INPUT else type_.nbytes
        live += owned - sum(sizes[leaf] for leaf in freed)
    return _Frame(operations, peak, own + below_traced, own + deepest)


def _weighed(instruction: Instruction) -> int:
    counted = WEIGHTS.get(instruction.op, 1) * PRIMITIVES[instruction.op].operations(instruction)
    if instruction.op in (Op.EXPONENT, Op.ARGMAX, Op.MAX, Op.SUM, Op.SCATTER_SUM, Op.DOT):
        counted += ROW * instruction.result.elements
    if instruction.op is Op.DOT:
        counted += ROW * sum(type_.elements for type_ in instruction.operand_types)
    return counted


PANEL_BYTES = 6
"""Of an element that a product's kernel packs: at most three planes of 16 bits."""
PANEL_ROWS = 32
"""Rows are packed this many at a time: a single row takes the room of all."""


def _packed(instruction: Instruction) -> int:
    """Bytes that `dot` takes for padding rows, of one product of a batch."""
    if instruction.op is not Op.DOT:
        return 0
    x, y = instruction.operand_types
    absent = sum(-type_.shape[-2] % PANEL_ROWS for type_ in (x, y))
    return PANEL_BYTES * absent * x.shape[-1]
