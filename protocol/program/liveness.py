"""Finds the last use of each value of a frame. Execution frees a value after its last use; `cost` counts the
live values.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from protocol.program.instruction import Instruction
from protocol.program.kept import kept
from protocol.program.program import Program


@kept
def releases(program: Program) -> tuple[tuple[int, ...], ...]:
    """For every instruction, the leaves of the trace to free after it: those that it reads or writes and that
    no later instruction reads. So a result that nothing reads is freed at once.
    """
    return tuple(releases_among(program, range(len(program.instructions))))


def releases_among(program: Program, numbers: Sequence[int]) -> list[tuple[int, ...]]:
    """`releases` if only the instructions `numbers` run, in this order. There is one entry for each of these
    instructions.
    """
    return releases_of([touched(program.instructions[number]) for number in numbers])


def touched(instruction: Instruction) -> tuple[int, ...]:
    """The leaves that an instruction writes and reads."""
    return (*instruction.leaves, *(operand.leaf for operand in instruction.operands))


def releases_of(reads_and_gives: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """For every piece of work, in order, those of its leaves that no later piece reads or writes.

    `reads_and_gives` has, for each piece, the leaves that it reads and writes.
    """
    last = {leaf: place for place, leaves in enumerate(reads_and_gives) for leaf in leaves}
    free: list[list[int]] = [[] for _ in reads_and_gives]
    for leaf, place in last.items():
        free[place].append(leaf)
    return list(map(tuple, free))


def ancestors(program: Program, leaves: Collection[int], known: Collection[int] = ()) -> list[int]:
    """The numbers, in ascending order, of the instructions that must run to compute `leaves`. The values
    `known` are already available.
    """
    needed = {program.producer(leaf) for leaf in leaves if leaf not in known}
    for number in range(max(needed, default=-1), -1, -1):
        if number in needed:
            operands = program.instructions[number].operands
            needed.update(program.producer(operand.leaf) for operand in operands if operand.leaf not in known)
    return sorted(needed)
