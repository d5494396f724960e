"""A result derived from a program is computed once, and freed with the program."""

from __future__ import annotations

import gc
import weakref

import pytest

from protocol.numerics.types import DType
from protocol.program import Builder, Program, TensorType, cost
from protocol.program.kept import kept
from protocol.program.liveness import releases
from protocol.program.parallel.units import units


def program(factor: int = 0x3F800000) -> Program:
    """A program with one product."""
    b = Builder("scaled")
    b.output(b.mul(b.input(TensorType(DType.F32, (3,))), b.f32(factor)))
    return b.build()


def test_a_program_is_asked_once_and_another_one_again() -> None:
    asked = list[Program]()

    @kept
    def size(of: Program) -> int:
        asked.append(of)
        return len(of.instructions)

    one, other = program(), program(0x40000000)
    assert [size(one), size(one), size(other), size(one)] == [len(one.instructions)] * 4
    assert asked == [one, other]


@pytest.mark.parametrize("find", [releases, cost, units])
def test_nothing_holds_a_program_that_nobody_has_any_more(find: object) -> None:
    made = program()
    assert callable(find)
    assert find(made) == find(made)
    alive = weakref.ref(made)
    del made
    gc.collect()
    assert alive() is None
