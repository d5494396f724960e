"""A node's deadlines, for metrics and for alerts before they pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Final

SHARE: Final = 5
"""An alert is raised only when less than 1 / SHARE of a deadline's period is left. Otherwise short periods
would cause an alert at once.
"""


@dataclass(frozen=True, slots=True)
class Deadline:
    """A deadline of a task. `kind` names the duty, `at` is when it is due (the chain's time), and `period` is
    the number of seconds allowed for it.
    """

    market: str
    task: int
    kind: str
    at: float
    period: float

    def is_near(self, now: float, before: float) -> bool:
        """Whether the deadline is due within `before` seconds or a fifth of its period, whichever is shorter.
        False once the deadline has passed.
        """
        return 0 <= self.at - now < min(before, self.period / SHARE)


class Deadlines:
    """All deadlines of a node. The loop and other threads write them, each under its own source name; any
    thread may read them.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._found: dict[tuple[str, str], tuple[Deadline, ...]] = {}

    def put(self, market: str, source: str, found: Iterable[Deadline]) -> None:
        """Replace the deadlines of a source in a market."""
        of = tuple(found)
        with self._lock:
            self._found[market, source] = of

    def __iter__(self) -> Iterator[Deadline]:
        """The earliest deadline of each market, task and kind."""
        with self._lock:
            found = [one for some in self._found.values() for one in some]
        earliest: dict[tuple[str, int, str], Deadline] = {}
        for one in sorted(found, key=lambda one: -one.at):
            earliest[one.market, one.task, one.kind] = one
        return iter(earliest.values())
