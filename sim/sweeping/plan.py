"""The question of a sweep (study, points, runs, seed), and how it is cut into chunks.

The cut depends only on the question, never on the machine, so that a resumed sweep has the same chunks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sim.errors import SweepError
from sim.studies.catalogue import study as found
from sim.studies.sizes import bounded
from sim.studies.study import SEEDS, Point, Study
from sim.sweeping.axes import Axes

MOST_ROUNDS: Final = 1_000_000
MOST_RUNS: Final = 10_000_000
"""Maximum runs per point. 10^7 rows are some GB, and a point is played in one piece."""
MOST_SEED: Final = (1 << 53) - 1
"""The largest integer that JSON keeps exactly."""

_ROWS: Final = 16_384
"""Maximum rows of a chunk: 3 MB with 25 columns. A chunk with only one point may have more."""
_WORK: Final = 1_000_000
"""Maximum tasks of a chunk: a few seconds of work, which an interruption loses. A chunk with only one point
may have more.
"""
_CHUNKS: Final = 32
"""Minimum number of chunks of a sweep, so that all processes finish at about the same time. A sweep with
fewer points than this has one chunk per point.
"""


@dataclass(frozen=True)
class Plan:
    """A question that can be played. `source` is the name or file by which the study was requested."""

    source: str
    study: Study
    axes: Axes
    points: Sequence[Point]
    runs: int
    rounds: int
    seed: int

    @property
    def points_per_chunk(self) -> int:
        """Number of points played and written together."""
        by_rows = _ROWS // self.runs
        by_work = _WORK // (self.runs * self.rounds)
        return max(1, min(by_rows, by_work, len(self.points) // _CHUNKS))

    @property
    def chunks(self) -> int:
        """Number of chunks. The results have the same number of parts."""
        return -(-len(self.points) // self.points_per_chunk)

    def chunk(self, number: int) -> Chunk:
        """Chunk `number`, counted from 0."""
        first = number * self.points_per_chunk
        return Chunk(
            number,
            self.source,
            first,
            tuple(self.points[first : first + self.points_per_chunk]),
            self.runs,
            self.rounds,
            self.seed,
        )


@dataclass(frozen=True)
class Chunk:
    """Everything that a worker process needs to play some points. It is pickled."""

    number: int
    source: str
    first: int
    """Index of the first point among all points."""
    points: tuple[Mapping[str, float], ...]
    runs: int
    rounds: int
    seed: int


def plan(
    source: str,
    axes: Mapping[str, Sequence[float]],
    *,
    runs: int | None = None,
    rounds: int | None = None,
    seed: int = 0,
) -> Plan:
    """Build and check a plan. The case of every point is built once, so that impossible values are rejected
    before playing.

    Raises StudyError, ParameterError and SweepError.
    """
    study = found(source)
    runs = _whole("runs", study.runs if runs is None else runs, SEEDS, MOST_RUNS)
    rounds = _whole("rounds", study.rounds if rounds is None else rounds, 1, MOST_ROUNDS)
    points = study.points(axes)
    if not points:
        raise SweepError(f"study {study.name!r}: expected at least one point, got none; widen its axes")
    swept = {name: tuple(values) for name, values in {**study.axes(), **axes}.items()}
    bounded(len(points), swept)
    for point in points:
        study.case(point)
    if source.endswith(".py"):
        source = str(Path(source).resolve())  # Workers and later reports may run in another directory.
    return Plan(source, study, swept, points, runs, rounds, _whole("seed", seed, 0, MOST_SEED))


def _whole(name: str, value: int, least: int, most: int) -> int:
    if not least <= value <= most:
        raise SweepError(f"{name}: expected {least} to {most:,}, got {value:,}; correct it")
    return value
