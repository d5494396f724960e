"""Every clock that a step asks is noticed, and nothing else is taken for a clock."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import UTC, date, datetime

import pytest

from protocol.capture.errors import Problem
from protocol.capture.preflight.clocks import asked_clocks


class Moment(datetime):
    """A class of the submitter, which inherits the methods that read the clock."""


class Day(date):
    """Like `Moment`, without a time of day."""


def asked(call: Callable[[], object]) -> list[str]:
    """What is refused about a step that makes this call."""
    found: list[Problem] = []
    with asked_clocks(found):
        call()
    return [problem.what for problem in found]


CLOCKS: dict[str, Callable[[], object]] = {
    "time": lambda: time.time(),
    "clock_gettime": lambda: time.clock_gettime(time.CLOCK_MONOTONIC),
    "clock_gettime_ns": lambda: time.clock_gettime_ns(time.CLOCK_MONOTONIC),
    "thread_time_ns": lambda: time.thread_time_ns(),
    "asctime": lambda: time.asctime(),
    "ctime": lambda: time.ctime(),
    "localtime": lambda: time.localtime(),
    "gmtime": lambda: time.gmtime(),
    "times": lambda: os.times(),
    "datetime.now": lambda: datetime.now(UTC),
    "datetime.today": lambda: datetime.today(),
    "date.today": lambda: date.today(),
    "Moment.now": lambda: Moment.now(UTC),
    "Moment.today": lambda: Moment.today(),
    "Day.today": lambda: Day.today(),
}


@pytest.mark.parametrize("name", CLOCKS)
def test_a_clock_is_noticed(name: str) -> None:
    assert asked(CLOCKS[name]) == [f"the step asks for the time, {name}"]


@pytest.mark.parametrize(
    "call",
    [lambda: time.sleep(0), lambda: datetime(2020, 1, 1).isoformat(), lambda: os.getpid(), lambda: [].copy()],
    ids=["sleep", "a fixed date", "another function of os", "a list"],
)
def test_another_call_is_no_clock(call: Callable[[], object]) -> None:
    assert asked(call) == []
