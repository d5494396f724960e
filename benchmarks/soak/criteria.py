"""The criteria of a soak, computed only from its samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from benchmarks.soak.samples import Party, Sample, Samples

MIB: Final = 1 << 20
PER: Final = 10
"""Growth is given per this many tasks."""
GROWTH: Final = 1.0
"""Limit on the growth of resident memory per `PER` tasks, in MiB."""
ROOM: Final = 0.5
"""Limit on the growth of the numbers of files and of threads per `PER` tasks. It is not 0, because the number
of open sockets fluctuates.
"""
CALLS: Final = 2.0
"""Limit on the number of requests to the chain that an idle process makes per block."""
LEAST: Final = 12
"""The slopes of a session are evaluated only if it has at least this many samples after its first third."""


@dataclass(frozen=True)
class Criterion:
    """The largest value of some quantity among all processes, the process that has this value, and the limit
    on the quantity.
    """

    what: str
    party: str
    value: float
    limit: float

    @property
    def passed(self) -> bool:
        """Whether the value is within the limit."""
        return self.value <= self.limit

    @property
    def line(self) -> str:
        """The criterion as a line of text."""
        verdict = "held" if self.passed else "FAILED"
        return f"{self.what}: {self.value:.2f} of at most {self.limit:g} ({self.party}): {verdict}"


def criteria(found: Samples) -> list[Criterion]:
    """All criteria that can be evaluated: those on the slopes in each session that is long enough, and those
    on the requests in each idle stretch.
    """
    return [*_slopes(found), *_calls(found)]


def _slopes(found: Samples) -> Iterator[Criterion]:
    for session in sorted({sample.session for sample in found.samples}):
        samples = settled(found.samples, session)
        if len(samples) < LEAST:
            continue
        # Memory is in MiB, the others are counts.
        for what, of, limit in (
            ("resident memory, MiB", lambda party: party.resident / MIB, GROWTH),
            ("open files", lambda party: party.files, ROOM),
            ("threads", lambda party: party.threads, ROOM),
        ):
            slopes = {name: PER * slope(samples, name, of) for name in samples[0].parties}
            worst = max(slopes, key=lambda name: slopes[name])
            yield Criterion(f"{what}, growth in {PER} tasks, session {session}", worst, slopes[worst], limit)


def _calls(found: Samples) -> Iterator[Criterion]:
    for idle in found.idle:
        calls = {name: sum(asked.values()) / idle.blocks for name, asked in idle.asked.items()}
        worst = max(calls, key=lambda name: calls[name])
        yield Criterion(
            f"questions to the chain a block, idle with {idle.past} past tasks", worst, calls[worst], CALLS
        )


def settled(samples: Sequence[Sample], session: int) -> list[Sample]:
    """The samples of a session after its first third."""
    own = [sample for sample in samples if sample.session == session]
    return own[len(own) // 3 :]


def slope(samples: Sequence[Sample], name: str, of: Callable[[Party], float]) -> float:
    """The growth of the quantity `of` per finished task, for the process `name`: the slope of the
    least-squares line.
    """
    xs = [float(sample.finished) for sample in samples]
    ys = [float(of(sample.parties[name])) for sample in samples]
    x, y = fmean(xs), fmean(ys)
    spread = sum((each - x) ** 2 for each in xs)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / spread if spread else 0.0


def per_task(samples: Sequence[Sample], name: str, of: Callable[[Party], int]) -> float:
    """The growth of the quantity `of` per finished task, for the process `name`, from the first sample to the
    last, over all sessions.
    """
    first, last = samples[0], samples[-1]
    tasks = last.finished - first.finished
    return (of(last.parties[name]) - of(first.parties[name])) / tasks if tasks else 0.0
