"""The time that replays take is estimated from measured steps."""

from __future__ import annotations

import sys

import pytest

from assay import estimate as module
from assay.estimate import WARM, Estimate, Progress


def test_the_first_steps_do_not_count() -> None:
    now = [0.0]
    estimate = Estimate(100, lambda: now[0])
    for _ in range(WARM):
        now[0] += 50  # compiling
        estimate.step()
    assert estimate.left is None
    for _ in range(10):
        now[0] += 2
        estimate.step()
    assert estimate.measured == 20
    assert estimate.left == pytest.approx(2 * (100 - WARM - 10))


def test_without_a_terminal_the_rest_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TOLD_AFTER", 0.0)
    said: list[str] = []
    with Progress(10, said.append) as progress:
        for number in range(10):
            progress.step(number, {})
            assert len(said) == (number + 1 > WARM)
    assert said == ["the rest takes about 0 s at the rate so far"]


def test_at_a_terminal_there_is_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    said: list[str] = []
    with Progress(10, said.append) as progress:
        for number in range(3):
            progress.step(number, {})
        (row,) = progress._bar.tasks
        assert (row.completed, row.total) == (3, 10)
    assert said == []
