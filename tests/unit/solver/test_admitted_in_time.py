"""What the admission takes, the solver's own queue does in time: over ten thousand random sets of tasks.

Each set has just the time that the admission asks for. A weaker test of any part lets sets in that are late, so the
queue and the test hold each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from unittest import mock

import pytest

from protocol.tasks import admission as tested
from protocol.tasks.admission import Clocks, Engagement, Refusal, admission
from solver import defence
from tests.unit.solver.simulated_games import RATES, Machine, Task, random_tasks

SETS = 10_000
Test = Callable[[Sequence[Engagement], Clocks], Refusal | None]


def whole(engagements: Sequence[Engagement], clocks: Clocks) -> Refusal | None:
    """The admission."""
    return admission(engagements, clocks, RATES)


def with_just_the_time(tasks: list[Task], clocks: Clocks, random: Random, test: Test) -> list[Task]:
    """The tasks with windows that the test takes: random ones, made longer only as far as it asks for."""
    windows = {task.engagement.name: random.choice((0.0, random.uniform(0, 200))) for task in tasks}
    while True:
        tasks = [
            replace(task, engagement=replace(task.engagement, seconds=windows[task.engagement.name]))
            for task in tasks
        ]
        refused = test([task.engagement for task in tasks], clocks)
        if refused is None:
            return tasks
        windows[refused.names[-1]] = refused.needed * (1 + 1e-12)


def late(number: int, test: Test, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a game of a random set that the test takes is lost on time."""
    random = Random(number)
    clocks = Clocks(random.choice((0.0, 2.0, random.uniform(0, 15))), random.choice((0.25, 0.5, 2.0)))
    tasks = with_just_the_time(random_tasks(random), clocks, random, test)
    longest = max(task.step for task in tasks)
    trained = random.choice((0.0, longest, random.uniform(0.1, longest)))
    return bool(Machine(tasks, clocks, trained, random.uniform(0, trained)).play(monkeypatch))


@pytest.mark.parametrize("part", range(4))
def test_what_is_admitted_is_answered_in_time(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [number for number in range(part, SETS, 4) if late(number, whole, monkeypatch)]
    assert found == []


def each_alone(engagements: Sequence[Engagement], clocks: Clocks) -> Refusal | None:
    """No sum over tasks, as before."""
    longest = max((one.piece for one in engagements), key=lambda piece: piece.operations)
    padded = [replace(one, piece=longest) for one in engagements]
    return next(filter(None, (admission([one], clocks, RATES) for one in padded)), None)


def without_inclusion(engagements: Sequence[Engagement], clocks: Clocks) -> Refusal | None:
    """A transaction takes no time."""
    return admission(engagements, replace(clocks, inclusion=0.0), RATES)


def without_looks(engagements: Sequence[Engagement], clocks: Clocks) -> Refusal | None:
    """A question is seen at once."""
    return admission(engagements, replace(clocks, look=0.0), RATES)


def with_one_step(engagements: Sequence[Engagement], clocks: Clocks) -> Refusal | None:
    """Only the step that runs is waited for."""
    with mock.patch.object(tested, "BEGUN", 1):
        return admission(engagements, clocks, RATES)


def without_steps(engagements: Sequence[Engagement], clocks: Clocks) -> Refusal | None:
    """Nothing runs that is not interrupted."""
    with mock.patch.object(tested, "BEGUN", 0):
        return admission(engagements, clocks, RATES)


@pytest.mark.parametrize("weak", [each_alone, without_inclusion, without_looks, with_one_step, without_steps])
def test_a_weaker_test_lets_in_what_is_late(weak: Test, monkeypatch: pytest.MonkeyPatch) -> None:
    assert any(late(number, weak, monkeypatch) for number in range(1_000))


def test_an_order_by_the_last_second_alone_loses_games_that_were_admitted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of two clocks the longer one may have to be answered first: more of it is for moves that are still to come."""
    monkeypatch.setattr(defence, "moves_left", lambda *_where: 0)
    assert any(late(number, whole, monkeypatch) for number in range(1_000))


def test_an_answer_that_makes_no_way_loses_games_that_were_admitted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long replay of one task, while another's clock ends."""
    monkeypatch.setattr(defence.Defence, "_make_way", lambda _self: None)
    assert any(late(number, whole, monkeypatch) for number in range(1_000))
