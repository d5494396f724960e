"""The time that a transaction takes: the 95th percentile of the latest ones, but at least two blocks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.chain.inclusion import KEPT, Inclusion, percentile

BLOCK = 12.0


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def inclusion(clock: Clock) -> Inclusion:
    return Inclusion(clock)


def mined(inclusion: Inclusion, clock: Clock, nonce: int, seconds: float) -> None:
    """Mine a transaction after `seconds`; its receipt is polled until then."""
    inclusion.begin(nonce)
    clock.now += seconds
    inclusion.waits(nonce)
    inclusion.end(nonce, BLOCK)


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0, 1))
def test_a_percentile_is_the_least_value_that_the_share_does_not_exceed(
    values: list[float], share: float
) -> None:
    found = percentile(values, share)
    assert found in values
    assert sum(value <= found for value in values) >= share * len(values)
    assert sum(value < found for value in values) < max(share * len(values), 1)


def test_before_any_receipt_a_transaction_takes_two_blocks(inclusion: Inclusion) -> None:
    assert inclusion.seconds(BLOCK) == 24
    assert inclusion.seconds(0.5) == 1


def test_three_slow_receipts_of_fifty_count_and_two_do_not(inclusion: Inclusion, clock: Clock) -> None:
    for nonce, seconds in enumerate((90, 30)):
        mined(inclusion, clock, nonce, seconds)
    assert inclusion.seconds(BLOCK) == 24
    mined(inclusion, clock, 2, 60)
    assert inclusion.seconds(BLOCK) == 30
    for nonce in range(3, 3 + KEPT):
        mined(inclusion, clock, nonce, 1)
    assert inclusion.seconds(BLOCK) == 24, (
        "they are not among the last any more, and quicker ones promise nothing"
    )


def test_it_counts_from_the_first_time_that_a_transaction_is_handed_over(
    inclusion: Inclusion, clock: Clock
) -> None:
    for nonce in range(3):
        inclusion.begin(nonce)
        clock.now += 50
        inclusion.begin(nonce)  # with a higher fee
        mined(inclusion, clock, nonce, 10)
    assert inclusion.seconds(BLOCK) == 60


def test_a_receipt_that_nobody_looked_for_says_nothing(inclusion: Inclusion, clock: Clock) -> None:
    """A long replay came before the poll, so the transaction may have been mined long ago."""
    for nonce in range(3):
        inclusion.begin(nonce)
        clock.now += 3_600
        inclusion.end(nonce, BLOCK)
    assert inclusion.seconds(BLOCK) == 24


def test_what_no_node_took_and_what_an_earlier_process_sent_is_not_timed(
    inclusion: Inclusion, clock: Clock
) -> None:
    for nonce in range(3):
        inclusion.begin(nonce)
        inclusion.forget(nonce)
        clock.now += 100
        inclusion.waits(nonce)
        inclusion.end(nonce, BLOCK)
    assert inclusion.seconds(BLOCK) == 24
