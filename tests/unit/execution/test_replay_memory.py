"""A replay drops each state that it has passed. States may have gigabytes, and several replays may run."""

from __future__ import annotations

import weakref
from collections.abc import Callable

from torch import Tensor

from protocol.execution.replay import HonestExecutor, Replay, run_steps
from protocol.program import Interpreter
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
