"""Escape and conviction: the float view against protocol.tasks.economics, against all draws of small tasks, and at
its limits."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from protocol.tasks.economics import ONE, Audit, escape_chance, escape_chance_rerolled, missed_chance
from sim.theory import (
    TheoryError,
    caught_probability,
    caught_probability_missed,
    escape_probability,
    last_caught_probability,
    missed_probability,
    raised_segments,
)
from sim.theory.bounds import count

AUDITS = [(5, 2, 3, 0.5), (40, 7, 4, 0.75), (12, 12, 1, 0.25), (1000, 4, 3, 0.625), (64, 64, 1, 1.0)]


@pytest.mark.parametrize(("segments", "q", "verifiers", "honest"), AUDITS)
@pytest.mark.parametrize("rerolls", [0, 2])
def test_is_the_float_view_of_the_integers(
    segments: int, q: int, verifiers: int, honest: float, rerolls: int
) -> None:
    audit = Audit(segments, q, verifiers, int(honest * ONE))
    false = np.arange(0, segments + 1)
    got = escape_probability(segments, false, q, verifiers, honest, rerolls=rerolls)
    missed = missed_probability(segments, false, q)
    for m in (0, 1, 2, segments // 2, segments):
        whole = escape_chance_rerolled(escape_chance(audit, m), rerolls)
        assert got[m] == pytest.approx(whole / ONE, abs=1e-12)
        assert missed[m] == pytest.approx(missed_chance(segments, m, q) / ONE, abs=1e-12)


def test_counts_every_draw_of_a_small_task() -> None:
    """Two seats on slots of which two of three are honest, two of four segments each: 324 equally likely draws."""
    false, honest_slots, slots, segments = {1, 3}, {0, 1}, 3, 4
    seats = list(product(range(slots), combinations(range(segments), 2)))
    draws = list(product(seats, repeat=2))
    escaped = sum(
        all(slot not in honest_slots or not false & set(drawn) for slot, drawn in draw) for draw in draws
    )
    got = escape_probability(segments, len(false), 2, 2, 2 / 3, rerolls=0)
    assert len(draws) == 324
    assert float(got) == pytest.approx(escaped / len(draws), rel=1e-14)


def test_limits() -> None:
    assert float(escape_probability(9, 0, 3, 2, 0.5)) == 1  # f -> 0
    assert float(escape_probability(9, 1, 9, 2, 1.0)) == 0  # h -> 1, q = K
    assert float(escape_probability(9, 1, 9, 2, 0.75, rerolls=0)) == pytest.approx(1 / 16)  # q = K: (1 - h)^V
    assert float(escape_probability(9, 4, 3, 2, 0.0)) == 1  # h -> 0
    assert float(last_caught_probability(3, 0.5)) == pytest.approx(7 / 8)
    assert float(last_caught_probability(3, 1.0)) == 1
    # All segments false: what segment K alone does.
    assert float(caught_probability(9, 9, 1, 3, 0.5, rerolls=0)) == pytest.approx(7 / 8)


def test_small_chances_keep_their_digits() -> None:
    """One of 2^20 segments, one drawn: h / K exactly, its 16th power far below 10^-18."""
    exact = Fraction(1, 2) / (1 << 20)
    assert float(caught_probability(1 << 20, 1, 1, 1, 0.5, rerolls=4)) == pytest.approx(
        float(exact**16), rel=1e-8
    )


def test_arguments_broadcast() -> None:
    table = caught_probability(30, 2, np.arange(1, 5)[:, None], np.arange(1, 4), 0.5, rerolls=0)
    assert table.shape == (4, 3)
    assert table[2, 1] == float(caught_probability(30, 2, 3, 2, 0.5, rerolls=0))
    assert np.all(np.diff(table, axis=0) > 0)
    assert np.all(np.diff(table, axis=1) > 0)


def test_q_after_misses_is_the_boards() -> None:
    """AuditBoard: q + (q + 1) / 2 in integers, V q at most 64."""
    assert [raised_segments(4, 3, n) for n in range(6)] == [4, 6, 9, 14, 21, 21]
    assert [raised_segments(1, 1, n) for n in range(4)] == [1, 2, 3, 5]
    assert [raised_segments(3, 1, n) for n in range(3)] == [3, 5, 8]
    assert (raised_segments(20, 3, 1), raised_segments(64, 1, 2)) == (21, 64)


def test_waiting_for_seeds_multiplies_the_chances() -> None:
    one, two, three = (float(caught_probability(40, 3, q, 3, 0.5, rerolls=0)) for q in (4, 6, 9))
    got = caught_probability_missed(40, np.array([3]), 4, 3, 0.5, misses=2)
    assert float(got[0]) == pytest.approx(one * two * three, rel=1e-14)
    # The bound that stakes are set by, 2^2 tries with the first q, is the lower one.
    assert float(got[0]) > float(caught_probability(40, 3, 4, 3, 0.5, rerolls=2))


@pytest.mark.parametrize(
    ("segments", "false", "q", "verifiers", "honest"),
    [
        (0, 0, 1, 1, 1),
        (5, 6, 1, 1, 1),
        (5, -1, 1, 1, 1),
        (5, 1, 1, 0, 1),
        (5, 1, 1, 1, 1.1),
        (5, 1.5, 1, 1, 1),
    ],
)
def test_impossible_audits_are_refused(
    segments: int, false: float, q: int, verifiers: int, honest: float
) -> None:
    with pytest.raises(TheoryError, match="must be"):
        caught_probability(segments, false, q, verifiers, honest)


def test_token_units_stay_exact_and_fractions_are_refused() -> None:
    assert count("amount", 10**18 + 1, 0) == 10**18 + 1
    assert count("amount", np.int64(3), 0, 3) == 3
    with pytest.raises(TheoryError, match=r"amount must be an integer, got 1\.5"):
        count("amount", 1.5, 0)  # type: ignore[arg-type]
    with pytest.raises(TheoryError, match="amount must be from 0 to 3, got 4"):
        count("amount", 4, 0, 3)
