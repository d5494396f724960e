"""A replay drops each state that it has passed, and the roots of that state's tensors. A state may have
gigabytes or 65,535 tensors, and several replays may run at once.
"""

from __future__ import annotations

import tracemalloc
import weakref
from collections.abc import Callable

import torch
from torch import Tensor

from protocol.execution.replay import HonestExecutor, Replay, run_steps
from protocol.numerics.types import DType
from protocol.program import Builder, Interpreter, StepProgram, TensorType
from protocol.program.step import State
from tests.unit.solver import tiny

STEPS = 5


class Watching(HonestExecutor):
    """Records at each step whether the weights of the first state are still in memory."""

    def __init__(self) -> None:
        super().__init__(tiny.step_program(), tiny.fixed(), Interpreter())
        self.first: weakref.ref[Tensor] | None = None
        self.alive: list[bool] = []

    def begin(self, _number: int = 0) -> State:
        state = tiny.initial()
        self.first = weakref.ref(state["weights"])
        return state

    def step(self, state: State, number: int, /) -> State:
        assert self.first is not None
        self.alive.append(self.first() is not None)
        return super().step(state, number)


def passed(play: Callable[[Watching], object]) -> list[bool]:
    executor = Watching()
    play(executor)
    assert len(executor.alive) == STEPS
    return executor.alive[2:]


def test_steps_drop_the_state_that_they_begin_with() -> None:
    assert not any(passed(lambda executor: run_steps(executor, executor.begin(), 1, STEPS)))


def test_a_replayed_segment_drops_the_checkpoint_that_it_begins_with() -> None:
    def play(executor: Watching) -> None:
        replay = Replay(tiny.step_program(), tiny.fixed(), executor, STEPS, executor.begin, lambda: None)
        assert len(replay.step_roots(1)) == STEPS + 1

    assert not any(passed(play))


def kept_bytes(tensors: int, steps: int) -> int:
    """The bytes of Python memory that `step_roots` keeps for a segment whose states have many scalars."""
    builder = Builder("scalars")
    inputs = [builder.input(TensorType(DType.I32, ())) for _ in range(tensors)]
    for scalar in inputs:
        builder.output(builder.add(scalar, builder.i32(1)))
    program = StepProgram(builder.build(), tuple(map(str, range(tensors))), datasets=0, constants=0)
    initial = {name: torch.tensor(0, dtype=torch.int32) for name in program.state}
    executor = HonestExecutor(program, (), Interpreter())
    replay = Replay(program, (), executor, steps, lambda _number: initial, lambda: None)
    replay.tensor_roots(2, 1)  # what the first run of a program loads
    tracemalloc.start()
    try:
        assert len(replay.step_roots(1)) == steps + 1
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def test_a_replayed_segment_keeps_one_root_a_step_however_many_tensors_a_state_has() -> None:
    few, many = kept_bytes(2, 40), kept_bytes(60, 40)
    assert many < few + 60 * 73, "less than the roots of the tensors of one state"
