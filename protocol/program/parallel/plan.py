"""One process's part of a program: the order of its work, the exchanges, and when values can be freed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from protocol.program.liveness import ancestors, releases_among
from protocol.program.opcodes import Op
from protocol.program.parallel.units import units
from protocol.program.program import Program


@dataclass(frozen=True, slots=True)
class Plan:
    """The work of one process.

    `order` holds the numbers of instructions. The exchanges `exchanges[p]` begin before instruction
    `order[p]` runs or, if p is the length of `order`, at the end. An exchange is a pair: the number of a
    unit's instruction, and the process that sends its results. `freed[p]` are the leaves of the trace that
    are used for the last time by instruction `order[p]`.
    """

    order: tuple[int, ...]
    exchanges: Mapping[int, Sequence[tuple[int, int]]]
    freed: tuple[tuple[int, ...], ...]


@lru_cache(maxsize=64)
def plan(program: Program, rank: int, size: int) -> Plan:
    """The plan of process `rank` of `size`.

    Units are numbered from 0. The process runs the units whose number mod `size` is `rank`, and the
    instructions that these units need. It also runs the instructions that compute the outputs from the
    results of all units.

    A round is one unit per process, all computed at the same time. The results of a round are exchanged while
    the next round is computed. An instruction that needs a result waits until that result has arrived.
    """
    shared = units(program) if size > 1 else ()
    places = {number: place for place, number in enumerate(shared)}
    given = {leaf for number in shared for leaf in program.instructions[number].leaves}
    outputs = {n for n, instruction in enumerate(program.instructions) if instruction.op is Op.OUTPUT}
    wanted = [operand.leaf for n in outputs for operand in program.instructions[n].operands]
    common = outputs.union(ancestors(program, wanted, given))
    order: dict[int, None] = {}
    exchanges: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for number in range(len(program.instructions)):
        if number in common:
            order[number] = None
        elif number in places and places[number] % size == 0:
            at = places[number]
            for mine in shared[at + rank : at + rank + 1]:
                order.update(dict.fromkeys((*_missing(program, mine, order), mine)))
            exchanges[len(order)] += [(unit, k) for k, unit in enumerate(shared[at : at + size])]
    freed = releases_among(program, list(order))
    return Plan(tuple(order), dict(exchanges), tuple(freed))


def _missing(program: Program, number: int, order: Container[int]) -> list[int]:
    """The instructions, in ascending order, that instruction `number` needs and that are not in `order` yet.
    The search stops at instructions in `order`: if a unit needs one of them, everything that this instruction
    needs is in `order` too. So each instruction is visited only once for all units together.
    """
    found: set[int] = set()
    ahead = [number]
    while ahead:
        for operand in program.instructions[ahead.pop()].operands:
            producer = program.producer(operand.leaf)
            if producer not in order and producer not in found:
                found.add(producer)
                ahead.append(producer)
    return sorted(found)
