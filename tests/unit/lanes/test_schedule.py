"""Schedules of lanes: rounds computed by hand, the effect of links and speeds, recommendations, and refused input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.lanes import ScheduleError
from protocol.lanes.schedule import (
    LEAST_TURNS,
    MEGABIT,
    MOST_INNER,
    QUESTIONS,
    Link,
    Schedule,
    Times,
    links_of,
    recommended,
    round_seconds,
    schedules,
    speeds_of,
    widths_of,
)

MESSAGE = 1_000_000
SECOND = Link(MESSAGE, MESSAGE)
"""A link that passes one message a second in each direction."""
TIMES = Times(
    step=0.1,
    beside={(width, block): 0.05 + 0.01 * width for width in (2, 4) for block in (1, 8, 64)},
    message_bytes={1: 1_062_500, 8: 257_812, 64: 32_226},
)
WIDE = 8

rates = st.floats(1e3, 1e9)
seconds = st.floats(0.01, 1e4)
links = st.lists(st.builds(Link, rates, rates), min_size=WIDE, max_size=WIDE)
speeds = st.lists(st.floats(0.05, 20), min_size=WIDE, max_size=WIDE)
factors = st.lists(st.floats(1, 10), min_size=WIDE, max_size=WIDE)


# a round


def test_equal_lanes_wait_for_the_slowest_link() -> None:
    fast = Link(4 * MESSAGE, 4 * MESSAGE)
    assert round_seconds([10, 10, 10], [SECOND] * 3, MESSAGE) == 12
    assert round_seconds([10, 10, 10], [fast, fast, SECOND], MESSAGE) == 12
    assert round_seconds([10, 10, 10], [fast] * 3, MESSAGE) == 10.5


def test_a_link_up_passes_a_copy_for_each_other_lane() -> None:
    slow_up = Link(MESSAGE, MESSAGE / 2)
    assert round_seconds([10, 10, 10], [SECOND, SECOND, slow_up], MESSAGE) == 14


def test_others_exchange_while_a_slow_lane_computes() -> None:
    # Lanes 0 and 1 send from 10 s on. From 20 s on, lane 2 fetches two messages and sends two, both in 2 s.
    assert round_seconds([10, 10, 20], [SECOND] * 3, MESSAGE) == 22
    # Lane 0 has lane 1's message after 10 + 4 s and lane 2's after 20 + 4 s.
    slow = Link(MESSAGE / 4, MESSAGE)
    assert round_seconds([10, 10, 20], [slow, SECOND, SECOND], MESSAGE) == 24


def test_into_a_bucket_a_message_goes_once() -> None:
    slow_up = Link(MESSAGE, MESSAGE / 4)
    # Lane 2's message is in the bucket after 14 s. The others have it 1 s later.
    assert round_seconds([10, 10, 10], [SECOND, SECOND, slow_up], MESSAGE, bucket=True) == 15
    assert round_seconds([10, 10, 10], [SECOND, SECOND, slow_up], MESSAGE) == 18


def test_questions_take_round_trips() -> None:
    assert round_seconds([10, 10], [SECOND] * 2, MESSAGE, trip=0.1) == pytest.approx(11 + 0.1 * QUESTIONS)


def test_one_lane_exchanges_nothing() -> None:
    assert round_seconds([10], [SECOND], MESSAGE, trip=1.0) == 10


@given(st.lists(seconds, min_size=2, max_size=WIDE), links, factors, st.booleans())
def test_faster_links_end_no_later(
    computing: list[float], given_links: list[Link], faster: list[float], bucket: bool
) -> None:
    given_links = given_links[: len(computing)]
    better = [Link(link.down * by, link.up * by) for link, by in zip(given_links, faster, strict=False)]
    whole = round_seconds(computing, given_links, MESSAGE, bucket)
    assert round_seconds(computing, better, MESSAGE, bucket) <= whole
    assert whole > max(computing)


@given(st.lists(seconds, min_size=2, max_size=WIDE), links, factors, st.booleans())
def test_lanes_that_compute_longer_end_no_sooner(
    computing: list[float], given_links: list[Link], longer: list[float], bucket: bool
) -> None:
    slower = [one * by for one, by in zip(computing, longer, strict=False)]
    given_links = given_links[: len(computing)]
    whole = round_seconds(computing, given_links, MESSAGE, bucket)
    assert whole <= round_seconds(slower, given_links, MESSAGE, bucket)


@given(seconds, links)
def test_equal_lanes_follow_the_closed_form(computing: float, given_links: list[Link]) -> None:
    slowest = min(min(link.down, link.up) for link in given_links)
    expected = computing + (WIDE - 1) * MESSAGE / slowest
    assert round_seconds([computing] * WIDE, given_links, MESSAGE) == pytest.approx(expected)


# schedules


def plan(
    given_links: Sequence[Link] = (SECOND,) * WIDE,
    given_speeds: Sequence[float] = (1.0,) * WIDE,
    steps: int = 10_000,
    everything: bool = False,
) -> list[Schedule]:
    return schedules(steps, TIMES, given_links, given_speeds, everything=everything)


def test_a_schedule_by_hand() -> None:
    found = next(one for one in plan() if (one.width, one.block, one.inner_steps) == (4, 8, 20))
    # 10,000 steps of 4 lanes are 2,500 steps each, in 125 rounds. A round takes 20 steps of 0.1 s, another
    # 0.09 s of computing, and three messages of 257,812 bytes over a link of 10^6 bytes a second.
    assert found.rounds == 125
    assert found.lane_steps == 2_500
    assert found.computing == pytest.approx(2.09)
    assert found.round == pytest.approx(2.09 + 0.773436)
    assert found.share == pytest.approx(0.773436 / 2.863436)
    assert found.seconds == pytest.approx(125 * 2.863436)
    assert found.lane_hours == pytest.approx(4 * 125 * 2.863436 / 3600)
    assert found.received == 125 * 3 * 257_812
    assert found.density == Fraction(1, 8)


def test_rounds_are_whole() -> None:
    found = next(one for one in plan(steps=10_001) if (one.width, one.block, one.inner_steps) == (4, 8, 20))
    assert (found.rounds, found.lane_steps) == (126, 2_520)


@given(links, speeds, st.floats(0.01, 1))
def test_the_recommended_one_ends_first_of_those_within_the_share(
    given_links: list[Link], given_speeds: list[float], share: float
) -> None:
    found = plan(given_links, given_speeds)
    best = recommended(found, share)
    within = [one for one in found if one.share <= share]
    if best is None:
        assert not within
    else:
        assert best.share <= share
        assert best.seconds == min(one.seconds for one in within)
    assert [one.seconds for one in found] == sorted(one.seconds for one in found)


@given(links, speeds, factors, factors)
def test_better_machines_end_no_later(
    given_links: list[Link], given_speeds: list[float], links_by: list[float], speeds_by: list[float]
) -> None:
    better = [Link(link.down * by, link.up * by) for link, by in zip(given_links, links_by, strict=True)]
    faster = [speed * by for speed, by in zip(given_speeds, speeds_by, strict=True)]
    first = plan(given_links, given_speeds)[0].seconds
    assert plan(better, faster)[0].seconds <= first * (1 + 1e-12)


def test_only_what_is_known_to_train_well_unless_everything_is_asked_for() -> None:
    known, every = plan(), plan(everything=True)
    assert set(known) < set(every)
    for one in every:
        well = one.inner_steps <= MOST_INNER[one.block] and one.rounds >= LEAST_TURNS * one.block
        assert (one in known) is well
    assert max(one.inner_steps for one in every) == 500


def test_a_short_task_has_no_schedule_that_is_known_to_train_well() -> None:
    with pytest.raises(
        ScheduleError, match="enough steps to send each parameter 3 times, got 4; train longer"
    ):
        plan(steps=4)
    assert plan(steps=4, everything=True)
    assert {one.inner_steps for one in plan(steps=1, everything=True)} == {1}


# an operator's options


def test_lists_are_read() -> None:
    assert widths_of("4,2, 4") == (2, 4)
    assert links_of("100", 2) == (Link(100 * MEGABIT, 100 * MEGABIT),) * 2
    assert links_of("100/20, 1000,50/10", 3) == (
        Link(100 * MEGABIT, 20 * MEGABIT),
        Link(1000 * MEGABIT, 1000 * MEGABIT),
        Link(50 * MEGABIT, 10 * MEGABIT),
    )
    assert speeds_of("1,1,0.25", 3) == (1.0, 1.0, 0.25)
    assert speeds_of("2", 3) == (2.0, 2.0, 2.0)


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (
            lambda: widths_of("1,2"),
            "widths: expected numbers of lanes from 2 to 16 .* got 1,2; correct --lanes",
        ),
        (lambda: widths_of("17"), "from 2 to 16"),
        (lambda: widths_of("two"), "got two"),
        (lambda: widths_of(""), "got none"),
        (lambda: links_of("fast", 2), "links: expected Mbit/s above 0.* got fast; correct --links"),
        (lambda: links_of("0", 2), "got 0"),
        (lambda: links_of("nan", 2), "got nan"),
        (lambda: links_of("inf", 2), "got inf"),
        (lambda: links_of("1/2/3", 2), "got 1/2/3"),
        (lambda: links_of("1/", 2), "got 1/"),
        (lambda: links_of("1,-2", 2), "got -2"),
        (
            lambda: links_of("1,2", 4),
            "links: expected one for all lanes, or one for each of 4, got 2; add to --links",
        ),
        (lambda: speeds_of("1,0", 2), "speeds: expected numbers above 0.* got 0; correct --speeds"),
        (lambda: speeds_of("1,", 2), "got none"),
        (lambda: speeds_of("1,1,1", 4), "leave widths above 3 out of --lanes"),
        (lambda: plan([SECOND] * 3), "links: expected one for all lanes, or one for each of 4, got 3"),
        (
            lambda: plan(given_speeds=[1.0] * 3),
            "speeds: expected one for all lanes, or one for each of 4, got 3",
        ),
    ],
)
def test_what_makes_no_schedule_is_refused(read: Callable[[], object], message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        read()
