"""Draws the loss of a task's segments as a line of block characters. Pure: the caller checks the values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

LOSS: Final = "loss"
BLOCKS: Final = "▁▂▃▄▅▆▇█"
MOST_POINTS: Final = 512
"""Limit on the segments whose states are read. If a task has more segments, every n-th segment and the last
one are read.
"""


@dataclass(frozen=True, slots=True)
class Point:
    """The metrics of a segment's last batch, from the state after the segment. `root` is that state's root,
    which is in the committed segment tree.
    """

    segment: int
    step: int
    root: bytes
    values: Mapping[str, float]

    @property
    def words(self) -> str:
        """The point in words."""
        values = ", ".join(f"{name} {value:.6g}" for name, value in self.values.items())
        return f"segment {self.segment}, step {self.step}: {values}"


def wanted(checkpoints: int, segments: int) -> list[int]:
    """The numbers of the committed checkpoints whose metrics are shown. The committed checkpoints are 1 …
    `checkpoints`; a task has `segments` segments in all.
    """
    stride = -(-segments // MOST_POINTS)
    return [i for i in range(1, checkpoints + 1) if i % stride == 0 or i == segments]


def sparkline(values: Sequence[float], width: int = 40) -> str:
    """Show the values as a row of block characters. The characters have eight heights: the least value gets
    the lowest, the greatest value the highest. "×" stands for a value that is not finite. If there are more
    than `width` values, each character shows the mean of a few neighbours.
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
    """The name of the metric that a curve shows: the loss, otherwise the first metric; None if the state
    keeps none.
    """
    return LOSS if LOSS in point.values else next(iter(point.values), None)
