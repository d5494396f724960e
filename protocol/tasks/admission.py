"""Admission: whether a party can finish in time all work that may be requested of it, in any order.

An *engagement* is work that may be requested once, at any time, and is due some seconds after the request.
*Standing* work, such as a registration that takes seats, is requested again and again. The work with the
earliest deadline is done first. Only a step or an answer, which are never interrupted, can delay work that is
due earlier. Take any interval of d seconds. The engagements that can be both requested and due within the
interval are those that are due at most d seconds after their request. So within the interval, a party never
has to do more work than the sum of the work of these engagements. This sum is the processor demand of Baruah,
Rosier and Howell (Real-Time Systems 2, 1990). The same sum bounds a self-suspending engagement (decision
135). If, for every d, the sum fits into d seconds at a third of the measured rates, everything is done in
time.

Waiting leaves less time for an engagement, but the machine can do other work meanwhile. Each transaction
waits for its receipt, and each request for the machine waits for the next look at the chain and for steps
that have begun. `owed` lists the engagements that follow from a task's terms. Pure: no clock, no chain.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import ceil, floor, inf, isclose, isfinite

from protocol.node.words import duration
from protocol.tasks.task import BEGUN, FILE_RATE, HASH_RATE, SAFETY


@dataclass(frozen=True, slots=True)
class Work:
    """An amount of work: scalar operations to replay, bytes to hash, and transactions to send one after the
    other. `eager` are operations that run outside of a program's steps, instruction by instruction. Unlike
    the operations of steps, they do not use kernels, so the speed of the steps says nothing about them.
    """

    operations: int = 0
    hashed_bytes: int = 0
    transactions: int = 0
    eager: int = 0


@dataclass(frozen=True, slots=True)
class Clocks:
    """Times in seconds. `inclusion` is the time from a transaction's broadcast to its receipt, `look` is the
    time between two looks at the chain, and `now` is the chain's present time.
    """

    inclusion: float
    look: float = 0.0
    now: float = 0.0


@dataclass(frozen=True, slots=True)
class Rates:
    """Operations, hashed bytes and written files a second, measured or configured. `programs` holds the
    operations a second of the programs that this machine has run, by program id.
    """

    operations: float
    hashed_bytes: float = HASH_RATE
    programs: Mapping[bytes, float] = field(default_factory=dict)
    files: float = FILE_RATE

    def of(self, program: bytes) -> float:
        """Operations a second of a program."""
        return self.programs.get(program, self.operations)

    def seconds(self, work: Work, program: bytes = b"") -> float:
        """Seconds that the work takes to compute at a third of the rates, because the machine also does other
        work.
        """
        steps, eager = work.operations / self.of(program), work.eager / self.operations
        return SAFETY * (steps + eager + work.hashed_bytes / self.hashed_bytes)


@dataclass(frozen=True, slots=True)
class Engagement:
    """`work` that is due within `seconds` of its request. `piece` and `answer` are the parts of it that are
    not interrupted: a step, and an answer in a game. Only the longer of these two parts matters. `waits` is
    how many times the work requests the machine. `since` is the chain's time of the request, or None if the
    request may still come.
    """

    name: str
    work: Work
    seconds: float
    piece: Work = Work()
    waits: int = 1
    since: float | None = None
    program: bytes = b""
    answer: Work = Work()


@dataclass(frozen=True, slots=True)
class Standing:
    """Work for tasks that come one after the other and need at most `operations` a second. Each task has at
    least `shortest` seconds, of which `beside` seconds are not available for computing.
    """

    name: str
    operations: float
    shortest: float
    beside: float = 0.0


Owed = Engagement | Standing


@dataclass(frozen=True, slots=True)
class Refusal:
    """The first sum of work that does not fit. The work in `names` needs `needed` seconds, but has only
    `there` seconds.
    """

    names: tuple[str, ...]
    needed: float
    there: float

    def __str__(self) -> str:
        """A message for people."""
        needed = duration(ceil(self.needed), 4) if isfinite(self.needed) else "endless time"
        there = duration(floor(self.there), 4) if isfinite(self.there) else "any"
        return f"{' and '.join(self.names)}: {needed} needed within {there}"


def admission(owed: Sequence[Owed], clocks: Clocks, rates: Rates) -> Refusal | None:
    """None if everything is done in time, otherwise the first sum of work that does not fit.

    If all standing work together takes more than the whole machine, the result is that sum. Otherwise it is
    the sum with the earliest deadline. Engagements may be accepted one after the other: if the result is None
    when a new one is added, those accepted before are still done in time.
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
        if not needed <= time:  # also true for NaN
            names = [engagements[number].name for _, number in rows[:row]]
            names += [one.name for one in standing if share and time > 0]
            there = _window(engagements[number], clocks)
            return Refusal(tuple(names), needed + there - time, there)
    return None


def longest_step(engagements: Iterable[Engagement], rates: Rates) -> float:
    """Seconds of the longest uninterruptible part of all engagements."""
    parts = ((one.program, part) for one in engagements for part in (one.piece, one.answer))
    return max((rates.seconds(part, program) for program, part in parts), default=0.0)


def seconds_beside(clocks: Clocks, step: float = 0.0, transactions: int = 1, waits: int = 1) -> float:
    """Seconds that transactions and waits for the machine take, in addition to computing. `step` is the
    seconds of the longest step.
    """
    return transactions * clocks.inclusion + waits * (clocks.look + BEGUN * step)


def most_operations(one: Standing, count: int, rates: Rates) -> float:
    """A limit in operations a second. If each of `count` pieces of standing work like `one` needs no more
    than this, the machine can do all of them together.
    """
    left = max(0.0, one.shortest - one.beside)
    return rates.operations / SAFETY / count * (left / one.shortest)


def _window(one: Engagement, clocks: Clocks) -> float:
    """Seconds until an engagement is due, counted from now, or from its request if the request may still come."""
    return one.seconds if one.since is None else min(one.seconds, one.since + one.seconds - clocks.now)


def _time(one: Engagement, clocks: Clocks, step: float) -> float:
    """Seconds in which an engagement's work can be computed: its window, minus the time for transactions,
    looks at the chain, and running steps.
    """
    return _window(one, clocks) - seconds_beside(clocks, step, one.work.transactions, one.waits)


def _share(one: Standing, rates: Rates) -> float:
    """The share of the machine that standing work takes, at a third of the machine's rates. It assumes that
    all tasks have the shortest time, because the seconds that are not for computing (`beside`) then take the
    largest part of a task's time.
    """
    left = one.shortest - one.beside
    return SAFETY * one.operations / rates.operations * (one.shortest / left if left > 0 else inf)
