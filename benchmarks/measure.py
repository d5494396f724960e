"""Measuring two things side by side in one run: the machines are noisy, so a ratio of medians is what is quoted."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple

Action = Callable[[], object]


class Middle(NamedTuple):
    """The median of some ratios and their middle half."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.low:.2f}–{self.high:.2f}"


@dataclass(frozen=True)
class Row:
    """One line of the table: `value` with its unit, `goal` as asked for, `spread` the middle half of what was measured.

    `ratio` is there where something ran beside its reference, for the figures.
    """

    what: str
    value: str
    goal: str
    spread: str = ""
    ratio: Middle | None = None


def seconds(action: Action, clock: Callable[[], float] = time.perf_counter) -> float:
    """Wall time of one call, or what another clock shows."""
    start = clock()
    action()
    return clock() - start


def side_by_side(
    ours: Action,
    references: Mapping[str, Action],
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """For each reference the ratios ours / reference of `rounds` rounds, in which all of them run one after the other.

    One round to warm up goes before. Every round begins with another one, so that none always meets the warmer cache.
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
    """Ratios ours / reference of `rounds` pairs that ran one after the other, after one pair to warm up."""
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
    """The line of a comparison."""
    found = quartiles(ratios)
    return Row(what, f"{found.median:.2f}x", goal, str(found), found)


def in_use(which: str) -> int:
    """Resident bytes of this process: VmRSS now, VmHWM the most so far, or since `memory.forget_largest`.

    Not `getrusage`: its largest use is handed on to a process from the one that started it (Linux: exec keeps it).
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    line = next(line for line in lines if line.startswith(which + ":"))
    return int(line.split()[1]) * 1024
