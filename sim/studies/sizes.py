"""Limits the number of points of a sweep. Larger sweeps are rejected before they exhaust memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import Final

from sim.errors import SweepError

MOST_POINTS: Final = 1_000_000


def combined(axes: Mapping[str, Sequence[float]]) -> list[Mapping[str, float]]:
    """Every combination of the axes' values. Raises SweepError for empty axes or too many points."""
    empty = [name for name, values in axes.items() if not len(values)]
    if empty:
        raise SweepError(f"{empty[0]}: expected at least one value, got none; widen its range")
    bounded(prod(len(values) for values in axes.values()), axes)
    return [dict(zip(axes, values)) for values in product(*axes.values())]


def bounded(points: int, axes: Mapping[str, Sequence[float]]) -> None:
    """Raise SweepError if `points` is more than a sweep can have. The message names the axes that have more
    than one value.
    """
    if points > MOST_POINTS:
        varied = ", ".join(name for name, values in axes.items() if len(values) > 1)
        raise SweepError(
            f"expected at most {MOST_POINTS:,} points, got {points:,}; give fewer values, or one, to some of: {varied}"
        )
