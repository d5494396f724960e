"""A replay keeps the roots that games in several segments need, up to a share of the machine's memory."""

from __future__ import annotations

import pytest

from protocol.commitments import state_root
from protocol.execution import replay
from protocol.execution.replay import HonestExecutor, Replay
from protocol.program import Interpreter
from protocol.program.step import State
from protocol.program.trace import KEEP_BYTES, held_bytes
from tests.unit.solver import tiny

SEGMENTS = range(1, 7)


class Counting(HonestExecutor):
    """Counts the steps that it runs."""

    steps = 0

    def step(self, state: State, number: int, /) -> State:
        """Count and run a step."""
        self.steps += 1
        return super().step(state, number)


@pytest.fixture
def executor() -> Counting:
    return Counting(tiny.step_program(), tiny.fixed(), Interpreter())


def run(executor: Counting) -> Replay:
    """A replay in which every segment begins with the initial state."""
    program = tiny.step_program()
    return Replay(program, tiny.fixed(), executor, tiny.STEPS, lambda _number: tiny.initial(), lambda: None)


def test_games_in_many_segments_replay_each_of_them_once(executor: Counting) -> None:
    kept = run(executor)
    for _ in range(3):
        for segment in SEGMENTS:
            assert len(kept.step_roots(segment)) == tiny.STEPS + 1
    assert executor.steps == len(SEGMENTS) * tiny.STEPS
    frames = [kept.frame(segment, 1) for segment in SEGMENTS]
    assert [kept.frame(segment, 1) for segment in SEGMENTS] == frames


def test_where_memory_is_short_the_two_last_ones_stay(
    executor: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "machine_memory", lambda: 1 << 10)
    kept = run(executor)
    for segment in (1, 2, 1, 3):  # 3 replaces 2
        kept.step_roots(segment)
    ran = executor.steps
    kept.step_roots(1)
    assert executor.steps == ran
    kept.step_roots(2)
    assert executor.steps == ran + tiny.STEPS


def test_a_share_of_the_memory_holds_as_many_as_fit(
    executor: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = (tiny.STEPS + 1) * replay.ROOT_BYTES
    monkeypatch.setattr(replay, "machine_memory", lambda: 4 * one * replay.ROOTS_SHARE)
    kept = run(executor)
    for segment in (1, 2, 3, 4, 1, 2, 3, 4):
        kept.step_roots(segment)
    assert executor.steps == 4 * tiny.STEPS
    kept.step_roots(5)
    kept.step_roots(1)
    assert executor.steps == 6 * tiny.STEPS


def test_tensor_roots_around_a_traced_step_need_no_replay(executor: Counting) -> None:
    kept = run(executor)
    expected = [kept.tensor_roots(1, step) for step in range(tiny.STEPS + 1)]
    assert [state_root(roots) for roots in expected] == list(kept.step_roots(1))
    for step in range(1, tiny.STEPS + 1):
        kept = run(executor)
        executor.steps = 0
        kept.frame(1, step)
        assert executor.steps == step, "a game's second replay is no longer than a segment"
        assert [kept.tensor_roots(1, step - 1), kept.tensor_roots(1, step)] == expected[step - 1 : step + 1]
        assert executor.steps == step


def test_tensor_roots_around_a_traced_step_stay_where_memory_is_short(
    executor: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "machine_memory", lambda: 1 << 10)
    kept = run(executor)
    kept.frame(1, 2)
    kept.frame(2, 3)  # its roots replace those of segment 1
    ran = executor.steps
    kept.tensor_roots(2, 2)
    kept.tensor_roots(2, 3)
    assert executor.steps == ran
    kept.tensor_roots(1, 2)
    assert executor.steps == ran + 2


def test_a_frame_is_counted_with_the_frames_below_it() -> None:
    """The expected sizes, by hand: the callee holds weights / 2 and a constant.

    The calling frame holds weights / 2, the sum, the count and its constant.
    """
    program = tiny.step_program().program
    below = 4 * 300 + 4
    own = 2 * 4 * 300 + 4 + 4
    assert held_bytes(program) == own + below
    assert held_bytes(program, 1_000) == 1_000 + 500
    assert held_bytes(program, KEEP_BYTES) == held_bytes(program)
