"""Measures actions side by side in one run. Machines are noisy, so results are medians of ratios."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple

Action = Callable[[], object]


class Middle(NamedTuple):
    """The median and the middle half (first and third quartile) of some ratios."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.low:.2f}–{self.high:.2f}"


@dataclass(frozen=True)
class Row:
    """One line of the table: `value` with its unit, the `goal`, and `spread`, the middle half of the
    measurements.

    Comparisons with a reference also have `ratio`, which the figures use.
    """

    what: str
    value: str
    goal: str
    spread: str = ""
    ratio: Middle | None = None


def seconds(action: Action, clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds that one call takes, as wall time or by another clock."""
    start = clock()
    action()
    return clock() - start


def side_by_side(
    ours: Action,
    references: Mapping[str, Action],
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """For each reference, the ratios ours / reference in `rounds` rounds. In a round, all actions run one
    after another.

    A warm-up round precedes these rounds. Rounds start with different actions, so that no action always
    benefits from a warm cache.
    """
    actions = [ours, *references.values()]
    for action in actions:
        action()
    found: dict[str, list[float]] = {name: [] for name in references}
    for turn in range(rounds):
        order = [(turn + k) % len(actions) for k in range(len(actions))]
        took = {k: seconds(actions[k], clock) for k in order}
        for k, name in enumerate(references, start=1):
            found[name].append(took[0] / took[k])
    return found


def interleaved(ours: Action, reference: Action, rounds: int) -> list[float]:
    """Ratios ours / reference of `rounds` pairs, after one warm-up pair. In a pair, both run one after the other."""
    return side_by_side(ours, {"": reference}, rounds)[""]


def quartiles(ratios: Sequence[float]) -> Middle:
    """The median and the middle half."""
    ordered = sorted(ratios)
    quarter = len(ordered) // 4
    return Middle(median(ordered), ordered[quarter], ordered[-1 - quarter])


def middle(ratios: Sequence[float]) -> tuple[float, str]:
    """The median, and the middle half as text."""
    found = quartiles(ratios)
    return found.median, str(found)


def ratio_row(what: str, ratios: Sequence[float], goal: str = "") -> Row:
    """The row of a comparison."""
    found = quartiles(ratios)
    return Row(what, f"{found.median:.2f}x", goal, str(found), found)


def in_use(which: str) -> int:
    """Resident bytes of this process. VmRSS is the current use; VmHWM is the peak since
    `memory.forget_largest` or since the start.

    `getrusage` is unsuitable: a process inherits the peak of the process that started it (Linux: exec keeps
    it).
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    line = next(line for line in lines if line.startswith(which + ":"))
    return int(line.split()[1]) * 1024
