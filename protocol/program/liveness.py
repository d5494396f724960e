"""When a value of a frame is needed for the last time: what fast execution frees and `cost` counts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache

from protocol.program.program import Program


@lru_cache(maxsize=1024)
def releases(program: Program) -> tuple[tuple[int, ...], ...]:
    """For every instruction the trace leaves that no later instruction reads; unread results count there too."""
    return tuple(releases_among(program, range(len(program.instructions))))


def releases_among(program: Program, numbers: Sequence[int]) -> list[tuple[int, ...]]:
    """`releases` where only the instructions `numbers` run, in this order: one entry for each of them."""
    last = {
        leaf: place
        for place, number in enumerate(numbers)
        for leaf in (
            *program.instructions[number].leaves,
            *(operand.leaf for operand in program.instructions[number].operands),
        )
    }
    free: list[list[int]] = [[] for _ in numbers]
    for leaf, place in last.items():
        free[place].append(leaf)
    return list(map(tuple, free))


def ancestors(program: Program, leaves: Collection[int], known: Collection[int] = ()) -> list[int]:
    """Numbers of the instructions that give trace leaves `leaves`, in order, where the leaves `known` are at hand."""
    needed = {program.producer(leaf) for leaf in leaves if leaf not in known}
    for number in range(max(needed, default=-1), -1, -1):
        if number in needed:
            operands = program.instructions[number].operands
            needed.update(program.producer(operand.leaf) for operand in operands if operand.leaf not in known)
    return sorted(needed)
