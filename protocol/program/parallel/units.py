"""Which instructions of a program may run in any order, on any process, and make up most of its work."""

from __future__ import annotations

from collections import defaultdict

from protocol.program.cost import cost
from protocol.program.kept import kept
from protocol.program.liveness import ancestors
from protocol.program.program import Program

SHARE = 0.5
"""Share of a program's operations that its units must have: sharing less does not pay for sending the results."""


@kept
def units(program: Program) -> tuple[int, ...]:
    """Numbers of the calls of the callee that the program spends most on, if there are several and none of them needs
    another's results; otherwise none. Depends on the program alone, so all processes find the same.
    """
    calls: dict[bytes, list[int]] = defaultdict(list)
    for number in program.calls():
        calls[program.callee(number).id].append(number)
    several = [numbers for numbers in calls.values() if len(numbers) > 1]
    numbers = max(several, key=lambda numbers: _operations(program, numbers), default=[])
    if _operations(program, numbers) < SHARE * cost(program).operations:
        return ()
    together = set(numbers)
    for number in numbers:
        operands = [operand.leaf for operand in program.instructions[number].operands]
        if together.intersection(ancestors(program, operands)):
            return ()
    return tuple(numbers)


def _operations(program: Program, numbers: list[int]) -> int:
    return len(numbers) * cost(program.callee(numbers[0])).operations if numbers else 0
