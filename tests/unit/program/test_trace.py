"""A trace keeps values that fit, recomputes the others, and runs no instruction more than necessary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from protocol.commitments import tensor_root
from protocol.numerics.types import DType
from protocol.program import Builder, Interpreter, Program, Site, TensorType, Trace, trace

ROW = TensorType(DType.F32, (4, 8))
X = torch.arange(-16.0, 16.0).reshape(4, 8)


class Counting(Interpreter):
    """Counts runs of each instruction, by frame and number."""

    def __init__(self) -> None:
        super().__init__()
        self.ran: Counter[tuple[tuple[int, ...], int]] = Counter()

    def results(self, site: Site, operands: Sequence[Tensor]) -> tuple[Tensor, ...]:
        self.ran[site.path, site.number] += 1
        return super().results(site, operands)


def inner() -> Program:
    b = Builder("inner")
    x, y = b.input(ROW), b.input(ROW)
    b.output(b.mul(b.add(x, y), y))
    return b.build()


def chain() -> Program:
    """A program with a chain of sums and negations.

    Instructions: 0 input, 1 … 4 the chain, 5 the sum of its last two values, 6 a call, 7 output.
    """
    b = Builder("chain")
    values = [b.input(ROW)]
    for k in range(4):
        values.append(b.neg(values[-1]) if k % 2 else b.add(values[-1], values[0]))
    both = b.add(values[-1], values[-2])
    (last,) = b.call(inner(), both, values[2])
    b.output(last)
    return b.build()


def made(keep: int) -> tuple[Trace, Counting]:
    evaluator = Counting()
    run = trace(chain(), [X], evaluator, keep=keep)
    evaluator.ran.clear()
    return run, evaluator


@pytest.mark.parametrize("room", [0, 1, 2, 3, 100])
def test_values_are_the_same_however_little_is_held(room: int) -> None:
    whole = trace(chain(), [X])
    run, _ = made(room * ROW.nbytes)
    assert run.roots == whole.roots
    for leaf in (6, 3, 0, 5, 1, 6):
        assert run.value(leaf) == whole.value(leaf)
        assert tensor_root(run.value(leaf)) == run.root(leaf)
    assert torch.equal(run.outputs[0], whole.outputs[0])
    assert run.callee(6).roots == whole.callee(6).roots


def test_everything_that_fits_is_held() -> None:
    run, evaluator = made(6 * ROW.nbytes)  # all leaves except the input, which does not count
    for leaf in range(7):
        run.value(leaf)
    assert not evaluator.ran


def test_what_is_not_held_is_computed_from_the_nearest_that_is() -> None:
    run, evaluator = made(3 * ROW.nbytes)  # leaves 1, 2, 3
    run.value(5)
    assert evaluator.ran == {((), 4): 1, ((), 5): 1}


def test_an_instruction_and_its_operands_cost_one_run() -> None:
    run, evaluator = made(0)
    run.value(5)
    assert set(evaluator.ran.values()) == {1}
    before = evaluator.ran.copy()
    for operand in run.program.instructions[5].operands:
        run.value(operand.leaf)
    run.value(5)
    assert evaluator.ran == before


def test_a_callee_is_held_until_another_is_asked_for() -> None:
    run, evaluator = made(0)
    below = run.callee(6)
    asked = evaluator.ran.copy()
    assert asked[(), 6] == 0  # the call itself does not run again
    assert asked[(6,), 2] == asked[(6,), 3] == 1
    assert run.callee(6) is below
    assert evaluator.ran == asked


def test_the_top_frame_runs_calls_by_kernels_and_the_disputed_frame_by_its_body() -> None:
    called: list[int] = []

    def kernel(operands: Sequence[Tensor]) -> tuple[Tensor, ...]:
        called.append(len(operands))
        return ((operands[0] + operands[1]) * operands[1],)

    run = trace(chain(), [X], Interpreter({inner().id: kernel}))
    assert called == [2]
    assert run.roots == trace(chain(), [X]).roots
    assert len(run.callee(6).roots) == 4
    assert called == [2]
