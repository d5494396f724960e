"""When a job of lanes ends, by its width, inner steps and density: arithmetic on times and links. Pure.

The model. All lanes begin a round together. A lane computes (absorb, H inner steps, emit, and what it does to keep and
check states), and then fetches the other W - 1 messages. So a message passes from a lane to another when both have
computed. A lane's link down passes W - 1 messages, and its link up W - 1 copies of its message, or one into a bucket,
which hands it on when it has all of it. What passes over a link shares its rate: it is through so late as if one
message went after the other. A round ends when every link has passed what it has to.

This is exact where lanes compute equally long, for then each message has its equal share of both of its links, and the
slowest link is never kept waiting by another. What no rate explains is `QUESTIONS` round trips. Left out is that a lane
which has all messages begins the next round before the others do. docs/lanes.md has this beside what was measured over
shaped links.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, isfinite
from typing import Final

from protocol.lanes.errors import ScheduleError
from protocol.numerics.kernels.fused import MOST_LANES

INNER: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500)
"""Steps a round that are tried."""
MOST_INNER: Final[Mapping[int, int]] = {1: 20, 8: 20, 16: 5, 32: 5, 64: 5}
"""Of each block, the most steps a round with which lanes are known to train better than one lane alone that makes as
many steps. In the study of docs/lanes.md four lanes of the smallest model lost 2.0 % less at 20 steps and 1/8, 2.9 %
less at 5 steps and 1/64; but 6.4 % more at 20 steps and 1/64. At 50 steps they lost from 0.5 % less (density 1) to
14.1 % more (1/64), at 20 steps and 1/16 0.4 % less: too little to count on."""
LEAST_TURNS: Final = 3
"""How often each parameter is sent in a whole training, at least: rounds times density. In the same study lanes lost
more than one lane alone with fewer (20/8 times: 2.0 % more), and less with 200/64 times."""
SHARE: Final = 0.1
"""Of a round that may be communication."""
QUESTIONS: Final = 5
"""Round trips until a lane has another's message, beside its bytes: a connection, the announcement, three tensors."""
MEGABIT: Final = 125_000
"""Bytes."""


@dataclass(frozen=True)
class Link:
    """A lane's line: bytes a second."""

    down: float
    up: float


@dataclass(frozen=True)
class Times:
    """What was measured on one machine, in seconds: a `step`, and what a round of a lane takes `beside` its steps, by
    width and block. `message_bytes`, with what announces a message, are by block."""

    step: float
    beside: Mapping[tuple[int, int], float]
    message_bytes: Mapping[int, int]


@dataclass(frozen=True)
class Schedule:
    """A way to train: seconds of a round, of which all lanes have computed after `computing`."""

    width: int
    inner_steps: int
    block: int
    rounds: int
    computing: float
    round: float
    received: int
    """Bytes that a lane receives in all."""

    @property
    def density(self) -> Fraction:
        """The part of the parameters that a message holds."""
        return Fraction(1, self.block)

    @property
    def lane_steps(self) -> int:
        """Steps that each lane trains: the task's over the width, up to whole rounds."""
        return self.rounds * self.inner_steps

    @property
    def share(self) -> float:
        """Of the time, what a round lasts beyond computing."""
        return 1 - self.computing / self.round

    @property
    def seconds(self) -> float:
        """Of the whole training."""
        return self.rounds * self.round

    @property
    def lane_hours(self) -> float:
        """Hours that all lanes together are occupied."""
        return self.width * self.seconds / 3600


def round_seconds(
    computing: Sequence[float],
    links: Sequence[Link],
    message_bytes: int,
    bucket: bool = False,
    trip: float = 0.0,
) -> float:
    """Seconds until a round ends whose lanes compute so long, where a question and its answer take `trip`."""
    if len(computing) == 1:
        return computing[0]
    lanes = range(len(computing))
    there = [seconds + message_bytes / link.up for seconds, link in zip(computing, links, strict=True)]
    ends = list[float]()
    for lane in lanes:
        others = [other for other in lanes if other != lane]
        both = [max(computing[lane], computing[other]) for other in others]
        down = [max(computing[lane], there[other]) for other in others] if bucket else both
        ends.append(_passed(down, message_bytes / links[lane].down))
        if not bucket:
            ends.append(_passed(both, message_bytes / links[lane].up))
    return max(ends) + QUESTIONS * trip


def _passed(there: Iterable[float], each: float) -> float:
    """When a link has passed messages that are there from these times on, and take so long each."""
    end = 0.0
    for begin in sorted(there):
        end = max(end, begin) + each
    return end


def schedules(
    steps: int,
    times: Times,
    links: Sequence[Link],
    speeds: Sequence[float],
    *,
    bucket: bool = False,
    trip: float = 0.0,
    everything: bool = False,
) -> list[Schedule]:
    """All that train so many steps together with the widths and blocks that `times` has, what ends first in front, and
    of what ends equally soon what is nearest to all-reduce. Lanes are the first of `links` and `speeds`.

    Without `everything`, only those within `MOST_INNER` and `LEAST_TURNS`. Raises `ScheduleError` for fewer links or
    speeds than lanes, and where nothing is left.
    """
    found: list[Schedule] = []
    for (width, block), beside in times.beside.items():
        for what, given in (("links", links), ("speeds", speeds)):
            if len(given) < width:
                raise _too_few(what, width, len(given))
        message_bytes = times.message_bytes[block]
        for inner in INNER:
            rounds = ceil(Fraction(steps, width * inner))
            known = inner <= MOST_INNER[block] and rounds >= LEAST_TURNS * block
            if (inner > 1 and inner * width > steps) or not (known or everything):
                continue
            computing = [(inner * times.step + beside) / speed for speed in speeds[:width]]
            whole = round_seconds(computing, links[:width], message_bytes, bucket, trip)
            received = rounds * (width - 1) * message_bytes
            found.append(Schedule(width, inner, block, rounds, max(computing), whole, received))
    if not found:
        raise ScheduleError(
            "task",
            expected=f"steps enough for {LEAST_TURNS} rounds of each lane",
            got=str(steps),
            remedy="train longer, name fewer --lanes, or say --any",
        )
    return sorted(found, key=lambda one: (one.seconds, one.inner_steps, one.block, one.width))


def recommended(found: Iterable[Schedule], share: float = SHARE) -> Schedule | None:
    """The first of `schedules` whose communication takes at most this share of the time; None where none does."""
    return next((one for one in found if one.share <= share), None)


# what an operator says


def widths_of(text: str) -> tuple[int, ...]:
    """Numbers of lanes between commas, each once, in order. Raises `ScheduleError`."""
    expected = f"numbers of lanes from 2 to {MOST_LANES} between commas, such as 2,4,8"
    try:
        found = sorted({int(one) for one in text.split(",")})
    except ValueError:
        found = []
    if not found or not all(2 <= width <= MOST_LANES for width in found):
        raise ScheduleError("widths", expected=expected, got=text or "none", remedy="correct --lanes")
    return tuple(found)


def links_of(text: str, width: int) -> tuple[Link, ...]:
    """Links of so many lanes: Mbit/s both ways, or down/up, one for all lanes or one each between commas. Raises
    `ScheduleError`.
    """
    return tuple(_link(one) for one in _each(text, "links", width))


def _link(text: str) -> Link:
    ways = text.split("/")
    rates = [_positive(way) for way in ways]
    if len(rates) > 2 or None in rates:
        raise ScheduleError(
            "links",
            expected="Mbit/s above 0, or such numbers down/up, such as 100 or 100/20",
            got=text or "none",
            remedy="correct --links",
        )
    down, up = (rate * MEGABIT for rate in (rates[0], rates[-1]) if rate is not None)
    return Link(down, up)


def speeds_of(text: str, width: int) -> tuple[float, ...]:
    """Speeds of so many lanes beside the machine that was measured, one for all or one each between commas. Raises
    `ScheduleError`.
    """
    found = [(one, _positive(one)) for one in _each(text, "speeds", width)]
    wrong = [one for one, speed in found if speed is None]
    if wrong:
        raise ScheduleError(
            "speeds",
            expected="numbers above 0, 1 for this machine's speed, such as 1,1,0.25",
            got=wrong[0] or "none",
            remedy="correct --speeds",
        )
    return tuple(speed for _, speed in found if speed is not None)


def _each(text: str, what: str, width: int) -> list[str]:
    """What a list says of each lane."""
    given = [one.strip() for one in text.split(",")]
    if len(given) == 1:
        return given * width
    if len(given) < width:
        raise _too_few(what, width, len(given))
    return given


def _positive(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return found if found > 0 and isfinite(found) else None


def _too_few(what: str, width: int, count: int) -> ScheduleError:
    return ScheduleError(
        what,
        expected=f"one for all lanes, or one for each of {width}",
        got=str(count),
        remedy=f"add to --{what}, or leave widths above {count} out of --lanes",
    )
