"""The loss of a task's segments as a line of blocks. Pure; which values are shown is the caller's to check."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

LOSS: Final = "loss"
BLOCKS: Final = "▁▂▃▄▅▆▇█"
MOST_POINTS: Final = 512
"""Segments of a task whose states are opened: of longer tasks each n-th and the last."""


@dataclass(frozen=True, slots=True)
class Point:
    """The metrics in the state after a segment, that is of its last step's batch. `root` is the state's, which is in
    the committed segment tree.
    """

    segment: int
    step: int
    root: bytes
    values: Mapping[str, float]

    @property
    def words(self) -> str:
        """For people."""
        values = ", ".join(f"{name} {value:.6g}" for name, value in self.values.items())
        return f"segment {self.segment}, step {self.step}: {values}"


def wanted(checkpoints: int, segments: int) -> list[int]:
    """Numbers of the checkpoints, of those that are committed (1 … `checkpoints`), whose metrics are shown."""
    stride = -(-segments // MOST_POINTS)
    return [i for i in range(1, checkpoints + 1) if i % stride == 0 or i == segments]


def sparkline(values: Sequence[float], width: int = 40) -> str:
    """Values from the least to the greatest as eight heights; "×" for one that is not finite. Of more than `width`
    values each place shows the mean of some neighbours.
    """
    if not values:
        return ""
    places = min(width, len(values))
    bounds = [i * len(values) // places for i in range(places + 1)]
    shown = [
        math.fsum(values[lo:hi]) / (hi - lo) if _finite(values[lo:hi]) else math.nan
        for lo, hi in pairwise(bounds)
    ]
    finite = [value for value in shown if math.isfinite(value)]
    if not finite:
        return "×" * len(shown)
    low, span = min(finite), max(finite) - min(finite)
    top = len(BLOCKS) - 1
    return "".join(
        ("×" if not math.isfinite(value) else BLOCKS[round((value - low) / span * top) if span else 0])
        for value in shown
    )


def _finite(values: Sequence[float]) -> bool:
    return all(map(math.isfinite, values))


def shown_metric(point: Point) -> str | None:
    """The metric that a curve shows: the loss, otherwise the first; None where the state keeps none."""
    return LOSS if LOSS in point.values else next(iter(point.values), None)
