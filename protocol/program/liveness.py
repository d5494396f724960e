"""When a value of a frame is needed for the last time: what fast execution frees and `cost` counts."""

from __future__ import annotations

from functools import lru_cache

from protocol.program.program import Program


@lru_cache(maxsize=1024)
def releases(program: Program) -> tuple[tuple[int, ...], ...]:
    """For every instruction the trace leaves that no later instruction reads; unread results count there too."""
    last = {
        leaf: number
        for number, instruction in enumerate(program.instructions)
        for leaf in (*instruction.leaves, *(operand.leaf for operand in instruction.operands))
    }
    free: list[list[int]] = [[] for _ in program.instructions]
    for leaf, number in last.items():
        free[number].append(leaf)
    return tuple(map(tuple, free))


def ancestors(program: Program, leaf: int) -> list[int]:
    """Numbers of the instructions that trace leaf `leaf` depends on, its own last, in order."""
    needed = {program.producer(leaf)}
    for number in range(program.producer(leaf), -1, -1):
        if number in needed:
            needed.update(program.producer(operand.leaf) for operand in program.instructions[number].operands)
    return sorted(needed)
