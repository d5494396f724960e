"""The whole question of a sweep: a study, its points, how often each is played, and the seed; and its cut into
chunks.

The cut follows from the question alone, never from the machine, so that a resumed sweep has the same chunks.
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
"""Per point: 10^7 rows of one point are some GB, and a point is played in one piece."""
MOST_SEED: Final = (1 << 53) - 1
"""What JSON keeps exactly."""

_ROWS: Final = 16_384
"""Rows of a chunk: of 25 columns, 3 MB."""
_WORK: Final = 1_000_000
"""Task-rounds of a chunk, some seconds: what an interruption costs."""
_CHUNKS: Final = 32
"""A sweep has at least that many chunks, or one for each point, so that processes end at the same time."""


@dataclass(frozen=True)
class Plan:
    """A question that can be played. `source` is the name or the file that the study was asked for by."""

    source: str
    study: Study
    axes: Axes
    points: Sequence[Point]
    runs: int
    rounds: int
    seed: int

    @property
    def points_per_chunk(self) -> int:
        """How many points are played and written together."""
        by_rows = _ROWS // self.runs
        by_work = _WORK // (self.runs * self.rounds)
        return max(1, min(by_rows, by_work, len(self.points) // _CHUNKS))

    @property
    def chunks(self) -> int:
        """How many parts the results have."""
        return -(-len(self.points) // self.points_per_chunk)

    def chunk(self, number: int) -> Chunk:
        """The part of that number, from 0."""
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
    """All that a process needs to play some points; it travels to workers."""

    number: int
    source: str
    first: int
    """Number of the first point among all."""
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
    """Build and check a plan; every point's case is made once, so that an impossible value is refused before any play.

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
        source = str(Path(source).resolve())  # Workers and later reports may run elsewhere.
    return Plan(source, study, swept, points, runs, rounds, _whole("seed", seed, 0, MOST_SEED))


def _whole(name: str, value: int, least: int, most: int) -> int:
    if not least <= value <= most:
        raise SweepError(f"{name}: expected {least} to {most:,}, got {value:,}; correct it")
    return value
