"""The time that a training still needs at the rate so far, and the bar that shows the deadline."""

from __future__ import annotations

from time import monotonic, sleep
from types import SimpleNamespace

import pytest
import torch
from rich.progress import ProgressColumn

from protocol.node.progress_bar import progress_bar
from solver.progress import Progress

TASK = 7
STATE = {"metric.loss": torch.tensor(1.0)}


def test_the_rate_is_that_of_the_steps_after_the_first() -> None:
    progress = Progress(bar=False)
    assert progress.due(TASK, 10) is None
    progress.begin(TASK, steps=1_000, done=100)
    assert progress.due(TASK, 10) is None
    sleep(0.3)  # as if kernels were compiled
    progress.step(TASK, 101, STATE)
    assert progress.due(TASK, 10) is None
    for number in range(102, 112):
        sleep(0.01)
        progress.step(TASK, number, STATE)
    needed = progress.due(TASK, 10)
    assert needed is not None
    assert needed >= 0.01 * (1_000 - 111)


def test_a_step_that_never_ends_lets_the_estimate_grow() -> None:
    progress = Progress(bar=False)
    progress.begin(TASK, steps=100, done=0)
    for number in (1, 2):
        progress.step(TASK, number, STATE)
    first = progress.due(TASK, 10)
    sleep(0.05)
    later = progress.due(TASK, 10)
    assert first is not None
    assert later is not None
    assert later >= first + 0.05 * 98


def test_a_training_that_ended_is_known_no_more() -> None:
    progress = Progress(bar=True)
    progress.begin(TASK, steps=4, done=0)
    for number in (1, 2):
        progress.step(TASK, number, STATE)
    assert progress.due(TASK, 10) is not None
    progress.end(TASK)
    progress.step(TASK, 3, STATE)
    assert progress.due(TASK, 10) is None
    progress.begin(TASK, steps=4, done=2)


def test_the_bar_says_how_long_there_is_and_in_red_when_that_is_too_little(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bar = progress_bar("", "", deadline=True)
    row = bar.add_task("", total=100)
    column = bar.columns[-1]
    assert isinstance(column, ProgressColumn)
    now = monotonic()
    clock = SimpleNamespace(monotonic=lambda: now)
    monkeypatch.setattr("protocol.node.progress_bar.time", clock)
    assert str(column.render(bar.tasks[row])) == ""
    bar.update(row, due=now + 7_200.9)
    text = column.render(bar.tasks[row])
    assert (str(text), getattr(text, "style", None)) == ("due in 2:00:00", "")
    bar.update(row, due=now - 1)
    text = column.render(bar.tasks[row])
    assert (str(text), getattr(text, "style", None)) == ("due in 0:00:00", "red")
