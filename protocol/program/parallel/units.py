"""Finds the units of a program: independent calls that do most of its work and that any process can run."""

from __future__ import annotations

from collections import defaultdict

from protocol.program.cost import cost
from protocol.program.kept import kept
from protocol.program.program import Program

SHARE = 0.5
"""Minimum share of a program's operations that its units must have; below it, sending the results costs too much."""


@kept
def units(program: Program) -> tuple[int, ...]:
    """The calls of one callee, as instruction numbers. The callee is the one whose calls together cost most,
    among the callees that are called several times.

    Empty if no callee is called several times, or if the calls of that callee depend on each other, or if
    their share of the program's operations is below `SHARE`. The result depends only on the program, so all
    processes find the same units.
    """
    calls: dict[bytes, list[int]] = defaultdict(list)
    for number in program.calls():
        calls[program.callee(number).id].append(number)
    several = [numbers for numbers in calls.values() if len(numbers) > 1]
    numbers = max(several, key=lambda numbers: _operations(program, numbers), default=[])
    if _operations(program, numbers) < SHARE * cost(program).operations:
        return ()
    return tuple(numbers) if _are_independent(program, set(numbers)) else ()


def _are_independent(program: Program, numbers: set[int]) -> bool:
    """Whether none of these instructions needs a result of another one, directly or by way of others. Reads
    each operand of the program once, because a stranger chooses the program.
    """
    reached: set[int] = set()
    for number, instruction in enumerate(program.instructions):
        depends = any(operand.leaf in reached for operand in instruction.operands)
        if depends and number in numbers:
            return False
        if depends or number in numbers:
            reached.update(instruction.leaves)
    return True


def _operations(program: Program, numbers: list[int]) -> int:
    return len(numbers) * cost(program.callee(numbers[0])).operations if numbers else 0
