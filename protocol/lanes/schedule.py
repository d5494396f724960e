"""Estimates when a job of lanes ends, from its width W, its H inner steps per round, and its density. Pure
arithmetic on times and links.

The model: all lanes begin a round together. A lane first does all its computing: it absorbs, trains H inner
steps, emits, keeps its state, and checks and keeps the others' messages. Then it fetches the messages of the
other W - 1 lanes. So a lane's downlink passes W - 1 messages.

Without a bucket, a message passes between two lanes once both have computed, and a lane's uplink passes W - 1
copies of the lane's own message. With a bucket, the uplink passes a single copy, to the bucket, once the lane
has computed. The bucket serves the message once it has received all of it. Messages on a link share the
link's rate, so the last one ends at the same time as if they were sent one after another. A round ends when
every link has passed its messages. The time of `QUESTIONS` round trips is added to each round of several
lanes.

The model is exact if all lanes compute for the same time: each message then gets an equal share of both links
that it uses, and the slowest link never waits for another. The model ignores that a lane that has all
messages begins the next round before the others do. docs/lanes.md compares the model with measurements over
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
"""Numbers of inner steps that are tried."""
MOST_INNER: Final[Mapping[int, int]] = {1: 20, 8: 20, 16: 5, 32: 5, 64: 5}
"""The maximum number of inner steps per round, by block size. The density is 1 / block size. Up to this
maximum, lanes are known to reach a lower loss than a single lane that makes as many steps in all as each of
them.

The study of docs/lanes.md compared the loss of four lanes with a single lane's, for the smallest model. With
5 inner steps, the loss was 2.9 % lower at density 1/64. With 20 inner steps, it was 2.0 % lower at 1/8 and
6.4 % higher at 1/64; at 1/16 it was 0.4 % lower, which is too little to rely on. With 50 inner steps, it was
between 0.5 % lower (density 1) and 14.1 % higher (1/64).
"""
LEAST_TURNS: Final = 3
"""On average, a training must send each parameter at least this many times. The average is the number of
rounds times the density.

In the study of docs/lanes.md, the loss was 2.0 % higher than a single lane's when each parameter was sent
20/8 = 2.5 times (20 rounds at density 1/8), and lower than a single lane's at 200/64 = 3.1 times (200 rounds
at 1/64).
"""
SHARE: Final = 0.1
"""In a recommended schedule, communication takes at most this share of a round."""
QUESTIONS: Final = 5
"""Round trips to fetch a message, not counting its bytes: a connection, the announcement, three tensors."""
MEGABIT: Final = 125_000
"""Bytes in a megabit."""


@dataclass(frozen=True)
class Link:
    """A lane's network link: bytes per second."""

    down: float
    up: float


@dataclass(frozen=True)
class Times:
    """Measurements on one machine: seconds of one `step`, and of the rest of a round's computing.

    `beside` maps (width, block) to the seconds of absorbing, emitting, keeping the lane's state, and checking
    and keeping the others' messages. `message_bytes` maps a block size to the bytes of a message and its
    announcement.
    """

    step: float
    beside: Mapping[tuple[int, int], float]
    message_bytes: Mapping[int, int]


@dataclass(frozen=True)
class Schedule:
    """A choice of width, inner steps and block, with its estimated times.

    `round` is the length of a round in seconds. `computing` is the time in seconds from the start of a round
    until the slowest lane has finished computing.
    """

    width: int
    inner_steps: int
    block: int
    rounds: int
    computing: float
    round: float
    received: int
    """Bytes that a lane receives in the whole training."""

    @property
    def density(self) -> Fraction:
        """The part of the parameters that a message holds."""
        return Fraction(1, self.block)

    @property
    def lane_steps(self) -> int:
        """Steps that each lane trains: the task's steps divided by the width, rounded up to whole rounds."""
        return self.rounds * self.inner_steps

    @property
    def share(self) -> float:
        """The fraction of a round that is left after the slowest lane has finished computing. No lane
        computes then.
        """
        return 1 - self.computing / self.round

    @property
    def seconds(self) -> float:
        """Seconds of the whole training."""
        return self.rounds * self.round

    @property
    def lane_hours(self) -> float:
        """Hours for which lanes are occupied, summed over all lanes."""
        return self.width * self.seconds / 3600


def round_seconds(
    computing: Sequence[float],
    links: Sequence[Link],
    message_bytes: int,
    bucket: bool = False,
    trip: float = 0.0,
) -> float:
    """Seconds that a round takes. `computing` holds the seconds that each lane computes. `trip` is the
    seconds of a network round trip.
    """
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
    """The time at which a link has passed all messages. `there` holds the times at which the messages become
    available; each message takes `each` seconds.
    """
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
    """All schedules that train `steps` steps with the widths and blocks of `times`, sorted by their end, the
    earliest first.

    Of schedules that end at the same time, the one with the fewest inner steps comes first, then the one with
    the smallest block. W lanes use the first W links and speeds. Without `everything`, only schedules within
    `MOST_INNER` and `LEAST_TURNS` are returned. Raises `ScheduleError` if there are fewer links or speeds
    than lanes, or if no schedule is left.
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
            expected=f"enough steps to send each parameter {LEAST_TURNS} times",
            got=str(steps),
            remedy="train longer, name fewer --lanes, or say --any",
        )
    return sorted(found, key=lambda one: (one.seconds, one.inner_steps, one.block, one.width))


def recommended(found: Iterable[Schedule], share: float = SHARE) -> Schedule | None:
    """The first schedule whose communication takes at most this share of the time, or None."""
    return next((one for one in found if one.share <= share), None)


# parsing an operator's options


def widths_of(text: str) -> tuple[int, ...]:
    """Parse a comma-separated list of numbers of lanes. Returns the numbers sorted and without duplicates.
    Raises `ScheduleError`.
    """
    expected = f"numbers of lanes from 2 to {MOST_LANES} between commas, such as 2,4,8"
    try:
        found = sorted({int(one) for one in text.split(",")})
    except ValueError:
        found = []
    if not found or not all(2 <= width <= MOST_LANES for width in found):
        raise ScheduleError("widths", expected=expected, got=text or "none", remedy="correct --lanes")
    return tuple(found)


def links_of(text: str, width: int) -> tuple[Link, ...]:
    """Parse the links of `width` lanes. Raises `ScheduleError`.

    A link is one number of Mbit/s for both directions, or two such numbers, written as down/up. The text is
    one link for all lanes, or a comma-separated list.
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
    """Parse the speeds of `width` lanes relative to the measured machine. Raises `ScheduleError`.

    The text is one speed for all lanes, or a comma-separated list.
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
    """Split a comma-separated list into the entries of the lanes. A single entry is repeated for all lanes.
    Raises `ScheduleError` if several entries are given, but fewer than `width`.
    """
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
