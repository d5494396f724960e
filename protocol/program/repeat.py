"""`repeat`: n runs of a program, each on the results of the run before (arithmetic.md section 7,
"structure").

This is not an instruction, but nested calls: one program calls the body 16 times, another calls that program
16 times for 256 runs, and so on. So a game finds one of n runs after log16 n calls, rounded up, and a frame
has at most 16 calls of one repeat.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from protocol.program.builder import Builder, Value
from protocol.program.check import MAX_CALL_DEPTH
from protocol.program.errors import RuleError
from protocol.program.program import Program

WIDTH = 16
"""Maximum number of a repeat's calls in one frame. It equals the maximum number of descendants of a node of
the trace tree (encoding.md section 2).
"""


def repeat(
    b: Builder, body: Program, count: int, carried: Sequence[Value], fixed: Sequence[Value] = ()
) -> tuple[Value, ...]:
    """The values `carried` after `count` >= 1 runs of `body`, which maps (carried …, fixed …) to the next
    `carried`.

    Raises `RuleError` if the body does not have this form, if the count is below 1, or if the calls would
    nest too deep.
    """
    _require_form(body, len(carried), count)
    return _runs(b, body, count, tuple(carried), tuple(fixed))


def _runs(
    b: Builder, body: Program, count: int, carried: tuple[Value, ...], fixed: tuple[Value, ...]
) -> tuple[Value, ...]:
    """Record at most 16 calls that together make `count` runs.

    All calls but the last make the same number of runs: the largest power of 16 below `count`, or 1 if
    `count` is 1. The last call makes the runs that are left.
    """
    size = 1
    while size * WIDTH < count:
        size *= WIDTH
    while count:
        runs = min(size, count)
        program = body if runs == 1 else _composite(body, runs, len(carried))
        carried = b.call(program, *carried, *fixed)
        count -= runs
    return carried


@lru_cache(maxsize=256)
def _composite(body: Program, count: int, kept: int) -> Program:
    b = Builder(f"{body.name} x {count}")
    inputs = tuple(map(b.input, body.inputs))
    for value in _runs(b, body, count, inputs[:kept], inputs[kept:]):
        b.output(value)
    return b.build()


def _require_form(body: Program, kept: int, count: int) -> None:
    if count < 1:
        raise RuleError("at least 1 run", str(count), operation="repeat")
    if body.outputs != body.inputs[:kept] or not kept:
        expected = ", ".join(map(str, body.inputs[:kept])) or "at least one carried value"
        raise RuleError(
            f"outputs of {body.name} of the carried types {expected}",
            ", ".join(map(str, body.outputs)),
            operation="repeat",
        )
    levels = next(k for k in range(count.bit_length()) if WIDTH**k >= count)
    deepest = 1 + call_depth(body) + max(0, levels - 1)
    if deepest > MAX_CALL_DEPTH:
        raise RuleError(
            f"calls at most {MAX_CALL_DEPTH} deep",
            f"{deepest}: {levels} levels for {count} runs of {body.name}",
            operation="repeat",
        )


def call_depth(program: Program) -> int:
    """The depth of nested calls below a frame of this program: 0 if it has no calls."""
    depths: dict[bytes, int] = {}
    for each in program.closure():
        depths[each.id] = max((1 + depths[each.callee(number).id] for number in each.calls()), default=0)
    return depths[program.id]
