"""Chances and stakes: economics.py against exact fractions, its vectors and audit.md section 9."""

import json
from fractions import Fraction
from math import comb
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.tasks.economics import (
    ONE,
    Audit,
    StakeError,
    escape_chance,
    expected_look_draws,
    expected_looks,
    least_look_lock,
    minimum_stake,
    missed_chance,
    picked_chance,
)
from tests.vectors import generate_draws, generate_economics


def exact_escape(audit: Audit, false: int) -> Fraction:
    k, q = audit.segments, min(audit.segments, audit.segments_per_verifier)
    missed = Fraction(comb(k - false, q), comb(k, q))
    honest = Fraction(audit.honest, ONE)
    return (1 - honest + honest * missed) ** audit.verifiers


@st.composite
def audits(draw: st.DrawFn) -> tuple[Audit, int]:
    segments = draw(st.integers(1, 60))
    audit = Audit(segments, draw(st.integers(1, 64)), draw(st.integers(1, 32)), draw(st.integers(1, ONE)))
    return audit, draw(st.integers(1, segments))


@pytest.mark.parametrize("generator", [generate_economics, generate_draws])
def test_vectors_are_what_the_generator_writes(generator: ModuleType) -> None:
    assert json.loads(generator.FILE.read_text()) == generator.document()


@given(audits())
def test_chances_round_up_and_closely(case: tuple[Audit, int]) -> None:
    audit, false = case
    exact = exact_escape(audit, false)
    got = Fraction(escape_chance(audit, false), ONE)
    # Each factor has at most 64 + 2 roundings of 10^-18, and the power is at most 32.
    assert exact <= got <= exact + Fraction(32 * 70, ONE)


def test_missed_chance_counts_subsets() -> None:
    assert missed_chance(5, 1, 2) == 6 * ONE // 10
    assert missed_chance(5, 4, 2) == 0
    assert missed_chance(5, 1, 9) == 0


@given(audits(), st.integers(0, 10**24), st.integers(0, 10**24))
def test_no_number_of_false_segments_pays(case: tuple[Audit, int], price: int, gain: int) -> None:
    """The inequality of audit.md section 9, exactly: (1 - P)(S + p) is at least f p + G for every f."""
    audit, _ = case
    try:
        stake = minimum_stake(audit, price, gain)
    except StakeError:
        assert min(1 - exact_escape(audit, m) for m in range(1, audit.segments + 1)) < Fraction(1, 10**4)
        return
    for false in range(1, audit.segments + 1):
        caught = 1 - exact_escape(audit, false)
        assert caught * (stake + price) >= Fraction(false * price, audit.segments) + gain


def test_stake_explodes_where_few_segments_are_drawn() -> None:
    """The formula of audit.md section 9 gives a stake of 118 p at K = 1000, q = 4, V = 3, h = 0.7 and G = p."""
    audit = Audit(1000, 4, 3, 7 * ONE // 10)
    assert minimum_stake(audit, ONE, ONE) // ONE == 118


def test_margin_and_what_a_cheater_recovers_come_on_top() -> None:
    audit = Audit(5, 2, 3, 7 * ONE // 10)
    assert minimum_stake(audit, 50, 50, margin=7, recoverable=11) == minimum_stake(audit, 50, 50) + 18


@pytest.mark.parametrize(
    "audit",
    [
        Audit(0, 1, 1, ONE),
        Audit(5, 65, 1, ONE),
        Audit(5, 1, 0, ONE),
        Audit(5, 1, 33, ONE),
        Audit(5, 1, 1, ONE + 1),
    ],
)
def test_terms_out_of_bounds_are_refused(audit: Audit) -> None:
    with pytest.raises(StakeError, match="must be from 1 to"):
        minimum_stake(audit, 1, 1)


def test_a_fraud_that_is_never_caught_has_no_stake() -> None:
    with pytest.raises(StakeError, match="raise q or V"):
        minimum_stake(Audit(1 << 10, 1, 1, 1), 1, 1)


@pytest.mark.parametrize(("segments", "fees"), [(1, 29), (2, 15), (4, 8.3)])
def test_the_lock_that_deters_skipping_is_so_many_of_what_the_seat_is_paid(
    segments: int, fees: float
) -> None:
    """Each segment is picked for a look with chance 0.1. A share h = 0.7 of the lookers is honest, and half
    of the lock counts. Then the lock of a seat of q segments is 1 / (0.7 (1 - 0.9^q) / 2) seat fees.
    """
    lock = least_look_lock(10**9, 1_000, segments, Fraction(7, 10))
    assert lock / 10**9 == pytest.approx(fees, rel=0.02)


@given(st.integers(0, 10**24), st.integers(1, 10_000), st.integers(1, 32), st.fractions(Fraction(1, 100), 1))
def test_skipping_any_share_of_the_steps_or_segments_costs_more_than_it_saves(
    saved: int, chance: int, segments: int, honest: Fraction
) -> None:
    lock = least_look_lock(saved, chance, segments, honest)
    assert lock % 2 == 0
    e = Fraction(chance, 10_000)
    for skipped in range(1, segments + 1):
        for share in (Fraction(1), Fraction(1, 3)):
            caught = 1 - (1 - e * share) ** skipped
            assert caught * honest * lock / 2 > share * saved * skipped / segments
    assert picked_chance(chance, segments) * honest * (lock - 2) / 2 <= saved


def test_nobody_is_deterred_without_looks_or_honest_lookers() -> None:
    for chance, honest in ((0, Fraction(1)), (1_000, Fraction(0))):
        with pytest.raises(StakeError, match="expected both above 0"):
            least_look_lock(1, chance, 1, honest)


def test_looks_of_every_level_are_expected_up_to_as_many_as_segments() -> None:
    assert expected_looks(1_000, 3) == 3 * Fraction(1111, 10_000)
    assert expected_looks(10_000, 3) == 3
    assert expected_look_draws(1_000, 1) == Fraction(1111, 1_000)
    assert expected_look_draws(10_000, 3) == 4
    assert expected_looks(0, 3) == expected_look_draws(0, 3) == 0
