"""Whether everything that a party may have to compute can be done in time, in any order of requests.

An *engagement* is asked of a party at most once, at any time, and is due within that many seconds of that; a
*standing* one, such as a registration that takes seats, again and again. Computing goes by earliest deadline first,
and only what is never interrupted, a step, holds what is due before it. So an interval of d seconds may ask for the
work of all engagements that have at most d seconds for it, and nothing else (the processor demand of Baruah, Rosier
and Howell, Real-Time Systems 2, 1990; a self-suspending engagement is bounded by the same sum, decision 135). Where
that fits for every d at a third of the measured rates, everything is done in time.

Each transaction takes the time until its receipt. Each time that an engagement asks for the machine again it is seen
at the next look at the chain, and may have to wait for steps that have begun. All of this shortens its own time and
takes none of the machine. `owed` says what a task's terms may ask for. Pure: no clock, no chain.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import ceil, floor, inf, isclose, isfinite

from protocol.node.words import duration
from protocol.tasks.task import BEGUN, HASH_RATE, SAFETY


@dataclass(frozen=True, slots=True)
class Work:
    """Scalar operations to replay, bytes to hash, and transactions sent one after the other."""

    operations: int = 0
    hashed_bytes: int = 0
    transactions: int = 0


@dataclass(frozen=True, slots=True)
class Clocks:
    """Seconds: from a transaction's broadcast to its receipt, between two looks at the chain, and the chain's time."""

    inclusion: float
    look: float = 0.0
    now: float = 0.0


@dataclass(frozen=True, slots=True)
class Rates:
    """Operations and hashed bytes a second, measured or set. `programs` are operations a second of programs that this
    machine has run, by program id.
    """

    operations: float
    hashed_bytes: float = HASH_RATE
    programs: Mapping[bytes, float] = field(default_factory=dict)

    def of(self, program: bytes) -> float:
        """Operations a second of a program."""
        return self.programs.get(program, self.operations)

    def seconds(self, work: Work, program: bytes = b"") -> float:
        """Seconds that the work takes at a third of the rates, without transactions: the machine does other
        work too.
        """
        return SAFETY * (work.operations / self.of(program) + work.hashed_bytes / self.hashed_bytes)


@dataclass(frozen=True, slots=True)
class Engagement:
    """`work` that is due within `seconds` of the request for it. `piece` is its longest uninterruptible part. It asks
    for the machine `waits` times. `since` is the chain's time of the request; None: it may still come.
    """

    name: str
    work: Work
    seconds: float
    piece: Work = Work()
    waits: int = 1
    since: float | None = None
    program: bytes = b""


@dataclass(frozen=True, slots=True)
class Standing:
    """Work of any tasks that ask for at most `operations` a second, one after the other. None has less time than
    `shortest` seconds, of which `beside` are not for computing.
    """

    name: str
    operations: float
    shortest: float
    beside: float = 0.0


Owed = Engagement | Standing


@dataclass(frozen=True, slots=True)
class Refusal:
    """The first sum that does not fit: that many seconds are `needed` for these within `there` seconds."""

    names: tuple[str, ...]
    needed: float
    there: float

    def __str__(self) -> str:
        """For people."""
        needed = duration(ceil(self.needed), 4) if isfinite(self.needed) else "endless time"
        there = duration(floor(self.there), 4) if isfinite(self.there) else "any"
        return f"{' and '.join(self.names)}: {needed} needed within {there}"


def admission(owed: Sequence[Owed], clocks: Clocks, rates: Rates) -> Refusal | None:
    """Whether everything is done in time; otherwise the sum that does not fit with the earliest deadline.

    If it is None for some engagements, and None with more added, the first ones are still done in time. So
    engagements may be accepted one after the other, each checked with all before it.
    """
    engagements = [one for one in owed if isinstance(one, Engagement)]
    standing = [one for one in owed if isinstance(one, Standing)]
    step = longest_step(engagements, rates)
    share = sum(_share(one, rates) for one in standing)
    if share > 1 and not isclose(share, 1):
        shortest = min(one.shortest for one in standing)
        return Refusal(tuple(one.name for one in standing), share * shortest, shortest)
    rows = sorted((_time(one, clocks, step), number) for number, one in enumerate(engagements))
    sums = accumulate(
        rates.seconds(engagements[number].work, engagements[number].program) for _, number in rows
    )
    for row, ((time, number), seconds) in enumerate(zip(rows, sums, strict=True), 1):
        needed = seconds + share * max(0.0, time)
        if not needed <= time:  # nor where it is not a number
            names = [engagements[number].name for _, number in rows[:row]]
            names += [one.name for one in standing if share and time > 0]
            there = _window(engagements[number], clocks)
            return Refusal(tuple(names), needed + there - time, there)
    return None


def longest_step(engagements: Iterable[Engagement], rates: Rates) -> float:
    """Seconds of the longest part that is not interrupted."""
    return max((rates.seconds(one.piece, one.program) for one in engagements), default=0.0)


def seconds_beside(clocks: Clocks, step: float = 0.0, transactions: int = 1, waits: int = 1) -> float:
    """Seconds that transactions and waits for the machine take besides computing; `step` is the longest step's time."""
    return transactions * clocks.inclusion + waits * (clocks.look + BEGUN * step)


def most_operations(one: Standing, count: int, rates: Rates) -> float:
    """Operations a second that each of that many standing engagements can take if all are to be admitted."""
    left = max(0.0, one.shortest - one.beside)
    return rates.operations / SAFETY / count * (left / one.shortest)


def _window(one: Engagement, clocks: Clocks) -> float:
    """Seconds from now, or from its request, until it is due."""
    return one.seconds if one.since is None else min(one.seconds, one.since + one.seconds - clocks.now)


def _time(one: Engagement, clocks: Clocks, step: float) -> float:
    """The part of these seconds that transactions, looks and running steps leave."""
    return _window(one, clocks) - seconds_beside(clocks, step, one.work.transactions, one.waits)


def _share(one: Standing, rates: Rates) -> float:
    """Share of the machine at a third of its rates. Work requested within d seconds must be done in d less the time
    besides computing, which weighs most in a row of the shortest tasks.
    """
    left = one.shortest - one.beside
    return SAFETY * one.operations / rates.operations * (one.shortest / left if left > 0 else inf)
