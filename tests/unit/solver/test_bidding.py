"""The bidding rule over terms and figures."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.tasks.task import Terms
from solver.bidding import Figures, Offer, Refusal, decide, least_price

FIGURES = Figures(
    free=1_000, operations_a_second=1e6, cost_a_second=2.0, fixed_cost=10, margin=0.5, opening=0.9, disk=500
)
TERMS = Terms(
    program_id=b"\1" * 32,
    constants_root=b"\1" * 32,
    initial_state=b"\1" * 32,
    bundle_hash=b"\1" * 32,
    constants=1,
    state_tensors=1,
    segments=4,
    segment_steps=5,
    step_operations=1_000_000,
    state_bytes=100,
    budget=1_000,
    stake=500,
    restitution=0,
    audit_fee=0,
    delay_penalty=0,
    bidding_period=10,
    training_period=30,
    challenge_period=20,
    attest_period=10,
    clock=1_000,
    replay_allowance=50,
    verifiers=1,
    segments_per_verifier=1,
    matches=1,
    arithmetic=1,
    bundle="http://127.0.0.1/",
)


def test_costs_are_twenty_seconds_at_two_units_and_ten_with_half_as_margin() -> None:
    assert least_price(TERMS, FIGURES) == 75


def test_the_first_bid_asks_for_a_share_and_an_answer_undercuts() -> None:
    assert decide(TERMS, FIGURES, 1) == Offer(900)
    assert decide(TERMS, FIGURES, 1, 800) == Offer(760)
    assert decide(TERMS, FIGURES, 1, 77) == Offer(75)
    assert isinstance(decide(TERMS, FIGURES, 1, 75), Refusal)
    assert decide(replace(TERMS, budget=75), FIGURES, 1) == Offer(75)


def test_a_quarter_more_time_than_training_takes_is_enough() -> None:
    assert isinstance(decide(replace(TERMS, training_period=25), FIGURES, 1), Offer)


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        (replace(TERMS, budget=74), "pay at most 74 units, costs with margin are 75"),
        (replace(TERMS, arithmetic=2), "arithmetic version 2"),
        (replace(TERMS, training_period=19), "20 s of training do not fit into 19 s"),
        (replace(TERMS, training_period=24), "20 s of training do not fit into 24 s with a quarter to spare"),
        (replace(TERMS, state_bytes=101), "checkpoints take up to 505 bytes, 500 are free for them"),
        (replace(TERMS, stake=1_001), "stake of 1001 units, 1000 are free"),
        (replace(TERMS, verifiers=2, matches=2), "2 attestations, 1 verifiers are in the draw"),
        (replace(TERMS, clock=856), "it allows 906 s in a game, 907 s are safe"),
    ],
)
def test_what_does_not_pay_or_cannot_be_done_is_refused_with_the_reason(terms: Terms, words: str) -> None:
    decision = decide(terms, FIGURES, 1)
    assert isinstance(decision, Refusal)
    assert words in decision.reason


def test_each_move_needs_two_blocks_too() -> None:
    """Replays and steps take 907 s of 1,050 s, 111 moves two blocks each."""
    assert isinstance(decide(TERMS, replace(FIGURES, block_seconds=0.64), 1), Offer)
    decision = decide(TERMS, replace(FIGURES, block_seconds=0.65), 1)
    assert decision == Refusal("it allows 1050 s in a game, 1051 s are safe")


def test_a_long_step_of_another_task_counts_and_its_long_segment_does_not() -> None:
    """Sixteen replays take 80 s here, safely 240 s; of 1,050 s 810 s are left, 666 times a step of 1.21 s."""
    for_hours = replace(TERMS, segment_steps=3_600, clock=10**6)
    assert isinstance(decide(TERMS, replace(FIGURES, taken=(for_hours,)), 1), Offer)
    long_step = replace(for_hours, step_operations=1_300_000)
    decision = decide(TERMS, replace(FIGURES, taken=(TERMS, long_step)), 1)
    assert decision == Refusal("it allows 1050 s in a game, 1106 s are safe")
    fits = replace(long_step, step_operations=1_200_000)
    assert isinstance(decide(TERMS, replace(FIGURES, taken=(TERMS, fits)), 1), Offer)


def test_no_step_of_its_own_may_hold_the_defence_of_another_task() -> None:
    mine = replace(TERMS, step_operations=1_300_000, clock=10**6, training_period=10**6)
    figures = replace(FIGURES, taken=(TERMS,))
    decision = decide(mine, figures, 1)
    assert decision == Refusal(
        "beside its steps a task that was taken allows 1050 s in a game, 1106 s are safe"
    )


@given(st.integers(1, 10**24), st.integers(0, 10**24), st.none() | st.integers(1, 10**24))
def test_an_offer_is_never_below_costs_above_the_budget_or_not_lower(
    budget: int, fixed: int, best: int | None
) -> None:
    terms, figures = replace(TERMS, budget=budget), replace(FIGURES, fixed_cost=fixed)
    decision = decide(terms, figures, 1, best if best is None else min(best, budget))
    if isinstance(decision, Offer):
        assert least_price(terms, figures) <= decision.price <= budget
        assert best is None or decision.price < best
