"""Measuring two things side by side in one run: the machines are noisy, so a ratio of medians is what is quoted."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Row:
    """One line of the table: `value` with its unit, `goal` as asked for, `spread` the middle half of the ratios."""

    what: str
    value: str
    goal: str
    spread: str = ""


def seconds(action: Callable[[], object]) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def interleaved(ours: Callable[[], object], reference: Callable[[], object], rounds: int) -> list[float]:
    """Ratios ours / reference of `rounds` pairs that ran one after the other, after one pair to warm up."""
    ours(), reference()
    found = []
    for k in range(rounds):
        # Alternate which goes first, so that neither always meets the warmer cache.
        if k % 2:
            second, first = seconds(reference), seconds(ours)
            found.append(first / second)
        else:
            found.append(seconds(ours) / seconds(reference))
    return found


def middle(ratios: list[float]) -> tuple[float, str]:
    """The median and the middle half as text."""
    ordered = sorted(ratios)
    quarter = len(ordered) // 4
    return median(ordered), f"{ordered[quarter]:.2f}–{ordered[-1 - quarter]:.2f}"
