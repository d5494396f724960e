"""`repeat` runs its body n times, in frames of at most 16 calls, log16 n levels deep (rounded up)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from protocol.numerics.types import DType
from protocol.program import Builder, Interpreter, Program, RuleError, TensorType, check, trace
from protocol.program.check import MAX_CALL_DEPTH
from protocol.program.library import CATALOGUE, hints, kernels
from protocol.program.repeat import WIDTH, call_depth, repeat

WORDS = TensorType(DType.U32, (2, 3))
STEP = TensorType(DType.I32, ())


def mixing() -> Program:
    """A body that carries words and a counter, and has a fixed multiplier.

    Each run gives words x multiplier + counter, and counter + 1.
    """
    b = Builder("mixing")
    words, counter, multiplier = b.input(WORDS), b.input(STEP), b.input(WORDS)
    b.output(b.add(b.mul(words, multiplier), b.cast(counter, DType.U32)))
    b.output(b.add(counter, b.i32(1)))
    return b.build()


def repeated(body: Program, count: int, kept: int) -> Program:
    b = Builder("repeated")
    inputs = [b.input(type_) for type_ in body.inputs]
    for value in repeat(b, body, count, inputs[:kept], inputs[kept:]):
        b.output(value)
    return b.build()


def direct(body: Program, count: int, kept: int, inputs: Sequence[Tensor]) -> list[Tensor]:
    carried = list(inputs[:kept])
    for _ in range(count):
        carried = list(Interpreter().run(body, (*carried, *inputs[kept:])))
    return carried


def words(seed: int) -> list[Tensor]:
    r = torch.Generator().manual_seed(seed)
    first, second = (torch.randint(-(2**31), 2**31, (2, 3), dtype=torch.int32, generator=r) for _ in range(2))
    return [first, torch.tensor(0, dtype=torch.int32), second]


@given(st.integers(1, 300), st.integers(0, 2**20))
@settings(max_examples=15)
def test_it_equals_as_many_direct_runs(count: int, seed: int) -> None:
    program, inputs = repeated(mixing(), count, 2), words(seed)
    check(program)
    run = trace(program, inputs, keep=0)
    assert int(run.outputs[1]) == count
    for got, due in zip(run.outputs, direct(mixing(), count, 2, inputs), strict=True):
        assert torch.equal(got, due)
    assert all(
        torch.equal(a, b) for a, b in zip(Interpreter().run(program, inputs), run.outputs, strict=True)
    )


@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 256, 257, 4095, 4096, 4097])
def test_frames_are_narrow_and_few_levels_deep(count: int) -> None:
    program = repeated(mixing(), count, 2)
    check(program)
    assert all(len(list(each.calls())) <= WIDTH for each in program.closure())
    assert call_depth(program) == max(1, math.ceil(round(math.log(count, WIDTH), 9)))
    assert len(program.closure()) <= 2 * call_depth(program) + 1


def test_the_call_below_a_composite_is_one_of_its_runs() -> None:
    inputs = words(7)
    run = trace(repeated(mixing(), 40, 2), inputs)
    composite = run.callee(list(run.program.calls())[1])  # runs 17 to 32
    third = composite.callee(list(composite.program.calls())[2])  # the run after 18 others
    assert [int(x) for x in third.outputs[1:]] == [19]
    assert torch.equal(third.outputs[0], direct(mixing(), 19, 2, inputs)[0])


def test_a_body_of_the_library_keeps_its_kernel() -> None:
    body = CATALOGUE["softmax"].program((TensorType(DType.F32, (3, 8)),), {"safe": False})
    program = repeated(body, 20, 1)
    found = kernels(program, hints(program))
    assert body.id in found
    used = []

    def counted(operands: Sequence[Tensor]) -> tuple[Tensor, ...]:
        used.append(1)
        return found[body.id](operands)

    x = torch.arange(24.0).reshape(3, 8)
    fast = Interpreter({**found, body.id: counted}).run(program, [x])
    assert len(used) == 20
    assert torch.equal(fast[0], Interpreter().run(program, [x])[0])


@pytest.mark.parametrize("count", [0, -1])
def test_no_runs_are_refused(count: int) -> None:
    with pytest.raises(RuleError, match="repeat: expected at least 1 run"):
        repeated(mixing(), count, 2)


@pytest.mark.parametrize("kept", [0, 1, 3])
def test_a_body_that_gives_something_else_than_it_carries_is_refused(kept: int) -> None:
    with pytest.raises(RuleError, match="carried"):
        repeated(mixing(), 3, kept)


def test_too_many_levels_are_refused_where_they_are_written() -> None:
    most = WIDTH**MAX_CALL_DEPTH
    with pytest.raises(RuleError, match=f"calls at most {MAX_CALL_DEPTH} deep, got 9"):
        repeated(mixing(), most + 1, 2)
    program = repeated(mixing(), most, 2)
    check(program)
    assert call_depth(program) == MAX_CALL_DEPTH
