"""The builder's views and helpers match torch and record no unnecessary instructions."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from protocol.numerics import elementary, elementary_torch
from protocol.numerics.types import DType, to_bytes
from protocol.program import Builder, Interpreter, Op, Program, TensorType, Value, check
from protocol.program.builder import aligned_length
from tests.unit.program.samples import fill

F32, I32 = DType.F32, DType.I32
CUBE = TensorType(F32, (3, 4, 5))
X = torch.arange(60.0).reshape(3, 4, 5)

Make = Callable[[Builder, Value], Value]
VIEWS: dict[str, tuple[Make, Callable[[Tensor], Tensor]]] = {
    "reshape": (lambda b, x: b.reshape(x, (6, 10)), lambda x: x.reshape(6, 10)),
    "reshape to flat": (lambda b, x: b.reshape(x, (60,)), lambda x: x.reshape(60)),
    "permute": (lambda b, x: b.permute(x, (2, 0, 1)), lambda x: x.permute(2, 0, 1)),
    "transpose": (lambda b, x: b.transpose(x, 0, -1), lambda x: x.transpose(0, -1)),
    "expand": (lambda b, x: b.expand(x, (2, 3, 4, 5)), lambda x: x.expand(2, 3, 4, 5)),
    "expand an axis": (
        lambda b, x: b.expand(b.slice(x, 1, 2, 3), (3, 7, 5)),
        lambda x: x[:, 2:3].expand(3, 7, 5),
    ),
    "slice": (lambda b, x: b.slice(x, 1, 1, 3), lambda x: x[:, 1:3]),
    "slice with a step": (lambda b, x: b.slice(x, -1, 1, 5, 3), lambda x: x[..., 1:5:3]),
    "slice the last": (lambda b, x: b.slice(x, 0, 2, 3, 9), lambda x: x[2:3:9]),
    "flip": (lambda b, x: b.flip(x, 1), lambda x: x.flip(1)),
    "flip of a slice": (lambda b, x: b.flip(b.slice(x, 0, 1, 3), 0), lambda x: x[1:3].flip(0)),
    "concat": (lambda b, x: b.concat([x, x], -1), lambda x: torch.cat([x, x], -1)),
    "pad": (
        lambda b, x: b.pad(x, (3, 5, 9), (0, 1, 2), 7.0),
        lambda x: torch.nn.functional.pad(x, (2, 2, 1, 0), value=7.0),
    ),
    "pad rows": (lambda b, x: b.pad_rows(x, -1.0), lambda x: torch.nn.functional.pad(x, (0, 3), value=-1.0)),
}


def program_of(make: Make, type_: TensorType) -> Program:
    b = Builder()
    b.output(make(b, b.input(type_)))
    program = b.build()
    check(program)
    return program


@pytest.mark.parametrize("name", VIEWS)
def test_views(name: str) -> None:
    make, expected = VIEWS[name]
    (value,) = Interpreter().run(program_of(make, CUBE), [X])
    assert value.equal(expected(X))


@pytest.mark.parametrize(
    "make",
    [
        lambda b, x: b.reshape(x, (3, 4, 5)),
        lambda b, x: b.expand(x, (3, 4, 5)),
        lambda b, x: b.cast(x, F32),
        lambda b, x: b.pad_rows(b.reshape(x, (15, 4)), 0.0),
    ],
)
def test_what_changes_nothing_records_nothing(make: Make) -> None:
    ops = [instruction.op for instruction in program_of(make, CUBE).instructions]
    assert set(ops) <= {Op.INPUT, Op.STRIDED, Op.OUTPUT}
    assert len(ops) <= 3


def test_equal_constants_are_recorded_once() -> None:
    b = Builder()
    assert b.constant(F32, (2,), 1.0) is b.constant(F32, (2,), 1.0)
    assert b.constant(F32, (2,), 0.0) is not b.constant(F32, (2,), -0.0)
    assert b.constant(F32, (2,), 1.0) is not b.constant(F32, (), 1.0)
    assert b.f32(0x3F800000) is b.constant(F32, (), 1.0)
    assert b.i32(-1) is b.constant(I32, (), b"\xff\xff\xff\xff")
    assert b.constant(F32, (), float("nan")) is b.constant(F32, (), bytes.fromhex("0000c07f"))


@pytest.mark.parametrize("itemsize", [4, 8])
def test_aligned_lengths_are_the_least_that_blocks_allow(itemsize: int) -> None:
    def fits(length: int) -> bool:
        return 1024 % (length * itemsize) == 0 or length * itemsize % 1024 == 0

    for length in range(1, 1100):
        assert aligned_length(length, itemsize) == next(n for n in range(length, 2048) if fits(n))


@pytest.mark.parametrize("name", elementary.__all__[1:])
def test_it_is_a_namespace_for_elementary_functions(name: str) -> None:
    type_ = TensorType(F32, (5000,))
    x = fill(type_, "bits", random.Random(1))
    (value,) = Interpreter().run(program_of(getattr(elementary, name), type_), [x])
    assert to_bytes(value, F32) == to_bytes(getattr(elementary_torch, f"{name}_f32")(x), F32)
