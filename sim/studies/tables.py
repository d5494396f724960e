"""Reads a study's table of results, in which the rows of one point are adjacent, one for each run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from sim.mechanism.arrays import Floats
from sim.parameters import KNOWN
from sim.studies.study import Point, Study, Table


def by_point(table: Table, name: str) -> Floats:
    """The values of a column, as an array of shape (points, runs)."""
    runs = int(table["run"].max()) + 1
    return table[name].reshape(-1, runs)


def of_points(table: Table, name: str) -> Floats:
    """The value of a swept parameter at each point, (points,)."""
    return by_point(table, name)[:, 0]


def mean(table: Table, name: str) -> Floats:
    """Mean of a measure over the runs of each point, (points,)."""
    return np.asarray(by_point(table, name).mean(axis=1))


def standard_error(table: Table, name: str) -> Floats:
    """Standard error of a measure's mean over runs, (points,); infinite for a single run."""
    rows = by_point(table, name)
    runs = rows.shape[1]
    if runs == 1:
        return np.full(len(rows), np.inf)
    return np.asarray(rows.std(axis=1, ddof=1) / np.sqrt(runs))


def draws(table: Table, *points: int, each: int | None = None) -> int:
    """Number of distinct random draws behind the rows of the given points. Each run counts as `each` draws
    or, by default, as one draw per round.

    Rows with the same seed, stream and run have used the same random numbers, so they count once.
    """
    seeds, streams, runs = (
        by_point(table, name)[list(points)].ravel().astype(np.int64) for name in ("seed", "stream", "run")
    )
    keys = (seeds * (streams.max() + 1) + streams) * (runs.max() + 1) + runs
    return len(np.unique(keys)) * (int(table["rounds"][0]) if each is None else each)


class OfSeed(Mapping[str, Floats]):
    """A table with only some rows of another table: those that were played with one seed. Its runs are
    numbered from 0. The rows of a column are selected when the column is read.
    """

    def __init__(self, table: Table, seed: int) -> None:
        self._table = table
        self._rows = np.flatnonzero(table["seed"] == seed)

    def __getitem__(self, name: str) -> Floats:
        values = self._table[name][self._rows]
        return values - values.min() if name == "run" else values

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)


def points_of(study: Study, table: Table) -> list[Point]:
    """The points of a table, with values of the types that the engine expects."""
    names = [name for name in table if name in KNOWN or name in study.extra()]
    columns = {name: of_points(table, name) for name in names}
    whole = {name: study.unit(name).whole for name in names}
    count = len(of_points(table, "point"))
    return [
        {name: int(columns[name][i]) if whole[name] else float(columns[name][i]) for name in names}
        for i in range(count)
    ]
