"""Several grids in one study: each grid varies some parameters, and the others stay at their centre.

The centre of a market parameter is the study's default. The centre of a study's own parameter is the first
value of its axis.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from sim.parameters import KNOWN
from sim.studies.sizes import bounded, combined
from sim.studies.study import Point, Study

Grid = Collection[str]
"""Names of the axes that a grid varies."""


def several(study: Study, given: Mapping[str, Sequence[float]], grids: Sequence[Grid]) -> list[Point]:
    """Points of all grids, without duplicates. Axes given by the operator are varied in every grid.

    Raises SweepError for an axis without values or for too many points, and ParameterError for an unknown
    name.
    """
    asked = {study.known(name): values for name, values in given.items()}
    axes = {**study.axes(), **asked}
    points: dict[tuple[float, ...], Point] = {}
    for grid in grids:
        ways = {
            name: values if name in grid or name in asked else (centre(study, name),)
            for name, values in axes.items()
        }
        points.update({tuple(point.values()): point for point in combined(ways)})
        bounded(len(points), axes)
    return list(points.values())


def centre(study: Study, name: str) -> float:
    """The value that a parameter keeps while others are varied."""
    value: float = getattr(study.parameters(), name) if name in KNOWN else study.axes()[name][0]
    return value


def within(study: Study, points: Sequence[Point], grid: Grid) -> list[int]:
    """Numbers of the points in which only the grid's parameters vary, while each other parameter keeps its
    centre.

    The operator may have given other values for such a parameter, so that no point has it at its centre. Its
    value in the first point then counts as its centre. The same holds for a parameter that is not an axis of
    the study.
    """
    fixed = {}
    for name, first in points[0].items():
        if name not in grid:
            here = centre(study, name) if name in study.axes() else first
            fixed[name] = here if any(point[name] == here for point in points) else first
    return [
        number
        for number, point in enumerate(points)
        if all(point[name] == value for name, value in fixed.items())
    ]
