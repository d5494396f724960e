"""Whatever the admission accepts, the solver's queue finishes in time: tested with ten thousand random sets
of tasks.

Each task has a random window, which is lengthened only as far as the admission requires. Further tests show
that each part of the admission is needed: if a part is left out, some accepted sets are late.
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
    """The real admission."""
    return admission(engagements, clocks, RATES)


def with_just_the_time(tasks: list[Task], clocks: Clocks, random: Random, test: Test) -> list[Task]:
    """Give the tasks random windows, lengthen the windows only until `test` accepts the tasks, and return the
    tasks.
    """
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
    """Whether the solver is too late in a game of random set `number`. The windows of the set are lengthened
    only until `test` accepts it.
    """
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
    """The admission of each task as if it were the only one, except that the longest step of any task may
    delay it.
    """
    longest = max((one.piece for one in engagements), key=lambda piece: piece.operations)
    padded = [replace(one, piece=longest) for one in engagements]
    return next(filter(None, (admission([one], clocks, RATES) for one in padded)), None)


def without_inclusion(engagements: Sequence[Engagement], clocks: Clocks) -> Refusal | None:
    """The admission, as if a transaction took no time."""
    return admission(engagements, replace(clocks, inclusion=0.0), RATES)


def without_looks(engagements: Sequence[Engagement], clocks: Clocks) -> Refusal | None:
    """The admission, as if a question were seen at once."""
    return admission(engagements, replace(clocks, look=0.0), RATES)


def with_one_step(engagements: Sequence[Engagement], clocks: Clocks) -> Refusal | None:
    """The admission, as if an answer waited for at most one step of other work."""
    with mock.patch.object(tested, "BEGUN", 1):
        return admission(engagements, clocks, RATES)


def without_steps(engagements: Sequence[Engagement], clocks: Clocks) -> Refusal | None:
    """The admission, as if every step could be interrupted."""
    with mock.patch.object(tested, "BEGUN", 0):
        return admission(engagements, clocks, RATES)


@pytest.mark.parametrize("weak", [each_alone, without_inclusion, without_looks, with_one_step, without_steps])
def test_a_weaker_test_lets_in_what_is_late(weak: Test, monkeypatch: pytest.MonkeyPatch) -> None:
    assert any(late(number, weak, monkeypatch) for number in range(1_000))


def test_an_order_by_the_last_second_alone_loses_games_that_were_admitted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A game with more time left may have to be answered first, if its later moves need more of that time."""
    monkeypatch.setattr(defence, "moves_left", lambda *_where: 0)
    assert any(late(number, whole, monkeypatch) for number in range(1_000))


def test_an_answer_that_makes_no_way_loses_games_that_were_admitted(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a long replay for one task is not interrupted, another task's clock runs out meanwhile."""
    monkeypatch.setattr(defence.Defence, "_make_way", lambda _self: None)
    assert any(late(number, whole, monkeypatch) for number in range(1_000))
