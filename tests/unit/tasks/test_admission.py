"""The admission test on small numbers, its messages, and terms chosen to evade it."""

from __future__ import annotations

import itertools
from dataclasses import replace
from math import inf, nan
from typing import Any

import pytest

from protocol.dispute.view import Phase
from protocol.program.cost import HASHED
from protocol.tasks import owed
from protocol.tasks.admission import (
    Clocks,
    Engagement,
    Rates,
    Refusal,
    Standing,
    Work,
    admission,
    longest_step,
    most_operations,
    seconds_beside,
)
from protocol.tasks.owed import moves_left
from protocol.tasks.task import HASH_RATE, MOST_MOVES, SAFETY
from tests.chain.trees import terms

AT_ONCE = Clocks(0.0)
SECONDS = Rates(SAFETY)
"""Rates of three operations a second. The admission counts on a third of the rates, so an operation takes a
second.
"""


def of(name: str, operations: int, seconds: float, **more: Any) -> Engagement:
    return replace(Engagement(name, Work(operations), seconds), **more)


def test_the_sum_of_all_that_is_due_by_a_deadline_has_to_fit() -> None:
    one, two, three = of("one", 4, 10), of("two", 6, 20), of("three", 10, 20)
    for order in itertools.permutations((one, two, three)):
        assert admission(order, AT_ONCE, SECONDS) is None
    refused = admission([three, one, replace(two, work=Work(7))], AT_ONCE, SECONDS)
    assert refused == Refusal(("one", "three", "two"), 21, 20)
    assert str(refused) == "one and three and two: 21 s needed within 20 s"
    # Work with a later deadline does not count.
    assert admission([of("late", 10**6, 10**7), of("soon", 11, 10)], AT_ONCE, SECONDS) == Refusal(
        ("soon",), 11, 10
    )


def test_nothing_is_owed_where_nobody_is_engaged() -> None:
    assert admission([], AT_ONCE, SECONDS) is None
    assert admission([of("nothing", 0, 0)], AT_ONCE, SECONDS) is None


def test_transactions_looks_and_steps_that_have_begun_shorten_an_engagements_own_time() -> None:
    """Three transactions take 2 s each. Four waits take 11 s each: 1 s and two steps of 5 s. Of 57 s, 7 are left."""
    slow = Engagement("slow", Work(7, transactions=3), 57, waits=4)
    step = of("step", 1, 10**6, piece=Work(5))
    assert admission([slow, step], Clocks(2, look=1), SECONDS) is None
    refused = admission([replace(slow, seconds=56.5), step], Clocks(2, look=1), SECONDS)
    assert refused == Refusal(("slow",), 57, 56.5)
    assert str(refused) == "slow: 57 s needed within 56 s"
    assert seconds_beside(Clocks(2, look=1), 5, transactions=3, waits=4) == 50


def test_what_was_asked_for_has_the_rest_of_its_time() -> None:
    asked = of("asked", 10, 100, since=1_000.0)
    assert admission([asked], Clocks(0, now=1_090), SECONDS) is None
    assert admission([asked], Clocks(0, now=1_091), SECONDS) == Refusal(("asked",), 10, 9)
    assert admission([replace(asked, seconds=9)], Clocks(0, now=0), SECONDS) == Refusal(("asked",), 10, 9)
    late = admission([asked], Clocks(0, now=2_000), SECONDS)
    assert str(late) == "asked: 10 s needed within 0 s"


def test_hashed_bytes_and_measured_programs_count() -> None:
    rates = Rates(1_000, programs={b"fast": 2_000.0})
    assert rates.seconds(Work(1_000)) == SAFETY
    assert rates.seconds(Work(1_000), b"fast") == SAFETY / 2
    assert rates.seconds(Work(0, HASH_RATE)) == SAFETY
    assert rates.seconds(Work(transactions=9)) == 0


def test_seats_of_all_accounts_may_ask_for_a_third_of_the_rates_together() -> None:
    clocks, rates = Clocks(24, look=0.5), Rates(3e9)
    seats = Standing("a", 0.0, 3_600, 600)
    each = most_operations(seats, 4, rates)
    assert each == pytest.approx(1e9 / 4 * 5 / 6)
    four = [replace(seats, name=name, operations=each) for name in "abcd"]
    assert admission(four, clocks, rates) is None
    refused = admission([*four[:3], replace(four[3], operations=1.01 * each)], clocks, rates)
    assert refused is not None
    assert (refused.names, refused.there) == (tuple("abcd"), 3_600)
    assert refused.needed == pytest.approx(3_609)
    # A game fits alone or with fewer seats, but not with all four.
    game = of("game", 10**9, 100)
    assert admission([game], clocks, rates) is None
    assert admission([game, *four], clocks, rates) is not None
    assert admission([replace(game, seconds=10), *four[:2]], clocks, rates) is None


def test_seats_without_time_for_their_transactions_are_refused() -> None:
    assert most_operations(Standing("a", 0.0, 10, 12), 1, SECONDS) == 0
    refused = admission([Standing("a", 1.0, 10, 12)], AT_ONCE, SECONDS)
    assert str(refused) == "a: endless time needed within 10 s"
    assert admission([Standing("a", 0.0, 10, 9)], AT_ONCE, SECONDS) is None


def test_what_the_terms_may_ask_for() -> None:
    task = terms(
        segments_per_verifier=2, attest_period=200, challenge_period=400, thinning=2, state_bytes=1_000
    )
    steps, step = task.segment_steps, task.step_operations
    replays, hashed = 16 * steps * step, 16 * (steps + 1) * 1_000
    games = owed.games("games", task, owed.Traces())
    assert games.work == Work(replays, hashed, MOST_MOVES)
    assert (games.seconds, games.waits) == (300, MOST_MOVES)
    game = owed.game("game", task)
    # A step's operations for the traces, at the machine's speed.
    assert game.work == Work(2 * steps * step, 2 * (steps + 1) * 1_000, MOST_MOVES, eager=step)
    seat = owed.seat("seat", task, 2, until=1_200)
    # Half of each state for the digests, the two last states of segments, and the result.
    assert seat.work == Work(2 * steps * step, 2 * (steps + 1) * 500 + 3_000, 1)
    assert (seat.since, seat.seconds, seat.waits) == (1_000, 200, 3)
    answers = owed.answers("answers", task)
    assert (answers.work.operations, answers.seconds, answers.since) == (2 * steps * step, 50, None)
    assert {one.piece for one in (games, game, seat, answers)} == {Work(step, 1_000)}
    assert [one.answer for one in (game, seat, answers)] == [Work(eager=step), Work(), Work()]


def test_games_ask_for_the_traces_of_a_path_and_for_a_value_in_each_demand_and_twice_in_each_round() -> None:
    task = terms(state_bytes=1_000)
    steps, step = task.segment_steps, task.step_operations
    games = owed.games("games", task, owed.Traces(eager=7, called=5, hashed_bytes=300, value_bytes=10))
    assert owed.VALUES == 96 + 2 * 5
    hashed = 16 * (steps + 1) * 1_000 + 16 * (300 + 106 * 10)
    assert games.work == Work(16 * (steps * step + 5), hashed, MOST_MOVES, eager=16 * 7)
    assert games.answer == Work(5, 300 + 2 * 10, eager=7)


def test_a_program_that_is_not_known_has_the_traces_that_its_terms_pay_for() -> None:
    assert owed.HASHED == HASHED
    task = terms(step_operations=70)
    assert owed.games("x", task) == owed.games("x", task, owed.Traces(70, 0, 10, 10))


def test_eager_operations_take_their_time_at_the_machines_speed_whatever_was_measured() -> None:
    rates = Rates(1_000, programs={b"fast": 10**15})
    assert rates.seconds(Work(eager=1_000), b"fast") == SAFETY
    fast = Engagement("fast", Work(), 10**6, Work(10**6), program=b"fast", answer=Work(eager=2_000))
    assert longest_step([fast], rates) == 2 * SAFETY


def test_answers_that_a_game_may_still_ask_for_become_fewer() -> None:
    assert moves_left(Phase.SEGMENT, 0, 0) == MOST_MOVES
    assert moves_left(Phase.STEP, 0, 90) == MOST_MOVES - 90
    assert moves_left(Phase.FRAME, 0, 96) == 9 + 5
    assert moves_left(Phase.FRAME, 8, 96) == 1 + 5
    assert moves_left(Phase.SPLIT, 8, 96) == 5


# ------------------------------------------------------------------ terms chosen to evade it


def test_numbers_at_their_bounds_are_refused_and_overflow_nothing() -> None:
    """The largest terms: 2^16 steps of 2^64 operations on states of 2^64 bytes."""
    most = terms(segment_steps=1 << 16, step_operations=2**64 - 1, state_bytes=2**64 - 1, clock=2**32 - 1)
    for engagement in (owed.games("x", most), owed.game("x", most), owed.seat("x", most, 64, 2**40)):
        refused = admission([engagement], Clocks(24, 0.5, now=2**40), Rates(2e9))
        assert refused is not None
        assert refused.needed > 2**40
    tiny = Rates(5e-324)
    assert str(admission([owed.games("x", most)], AT_ONCE, tiny)) == (
        "x: endless time needed within more than 100 years"
    )


@pytest.mark.parametrize("clocks", [Clocks(nan), Clocks(inf), Clocks(0, look=nan)])
def test_a_time_that_is_not_known_admits_nothing(clocks: Clocks) -> None:
    assert admission([owed.games("x", terms(clock=10**9))], clocks, Rates(1e12)) is not None


def test_steps_without_operations_still_take_their_moves() -> None:
    free = terms(segment_steps=1, step_operations=1, state_bytes=1, clock=1)
    refused = admission([owed.games("x", free)], Clocks(2, 0.5), Rates(1e12))
    assert refused is not None
    assert refused.needed == pytest.approx(MOST_MOVES * 2.5)


def test_states_that_take_long_to_hash_are_refused_where_their_steps_take_no_time() -> None:
    huge = terms(segment_steps=100, step_operations=1, state_bytes=10**9, clock=10_000)
    refused = admission([owed.games("x", huge)], AT_ONCE, Rates(1e15))
    assert refused is not None
    assert refused.needed >= SAFETY * 16 * 101 * 10**9 / HASH_RATE


def test_a_hundred_small_engagements_are_taken_one_by_one_until_their_sum_does_not_fit() -> None:
    """Each engagement fits alone. Those with which the sum would not fit are refused."""
    small = [of(f"games of task {n}", 3, 100 + n % 7) for n in range(100)]
    taken: list[Engagement] = []
    refused: list[Refusal] = []
    for one in small:
        assert admission([one], AT_ONCE, SECONDS) is None
        found = admission([*taken, one], AT_ONCE, SECONDS)
        if found is None:
            taken.append(one)
        else:
            refused.append(found)
    assert len(taken) == 106 // 3
    assert admission(taken, AT_ONCE, SECONDS) is None
    assert all(len(found.names) > 1 and found.needed > found.there for found in refused)


def test_a_lower_rate_or_a_slower_chain_refuses_the_next_one() -> None:
    taken, next_one = of("one", 40, 100), of("two", 40, 100)
    assert admission([taken, next_one], AT_ONCE, SECONDS) is None
    assert admission([taken, next_one], AT_ONCE, Rates(SAFETY / 2)) is not None
    slow = replace(next_one, work=Work(40, transactions=10))
    assert admission([taken, slow], Clocks(6), SECONDS) is None
    assert admission([taken, slow], Clocks(6.1), SECONDS) is not None
