"""The float formulas for escape and conviction are compared with protocol.tasks.economics, with all draws of
small tasks, and with limits.
"""

from fractions import Fraction
from itertools import combinations, permutations, product

import numpy as np
import pytest

from protocol.tasks.economics import ONE, Audit, escape_chance, missed_chance
from sim.theory import (
    TheoryError,
    caught_probability,
    escape_probability,
    missed_probability,
)
from sim.theory.bounds import count

AUDITS = [(5, 2, 3, 0.5), (40, 7, 4, 0.75), (12, 12, 1, 0.25), (1000, 4, 3, 0.625), (64, 64, 1, 1.0)]


@pytest.mark.parametrize(("segments", "q", "verifiers", "honest"), AUDITS)
def test_is_the_float_view_of_the_integers(segments: int, q: int, verifiers: int, honest: float) -> None:
    audit = Audit(segments, q, verifiers, int(honest * ONE))
    false = np.arange(0, segments + 1)
    got = escape_probability(segments, false, q, verifiers, honest)
    missed = missed_probability(segments, false, q)
    for m in (0, 1, 2, segments // 2, segments):
        whole = escape_chance(audit, m)
        assert got[m] == pytest.approx(whole / ONE, abs=1e-12)
        assert missed[m] == pytest.approx(missed_chance(segments, m, q) / ONE, abs=1e-12)


def test_counts_every_draw_of_a_small_task() -> None:
    """There are 216 equally likely draws.

    The two seats go to two different accounts. There are three accounts, and two of them are honest. Each
    seat gets two of the four segments.
    """
    false, honest, accounts, segments = {1, 3}, {0, 1}, 3, 4
    sets = list(combinations(range(segments), 2))
    draws = [zip(who, what) for who in permutations(range(accounts), 2) for what in product(sets, repeat=2)]
    escaped = sum(
        all(account not in honest or not false & set(drawn) for account, drawn in draw) for draw in draws
    )
    got = escape_probability(segments, len(false), 2, 2, 2 / 3, accounts=accounts)
    assert len(draws) == 216
    assert float(got) == pytest.approx(escaped / len(draws), rel=1e-14)


def test_many_accounts_are_as_good_as_endless_ones() -> None:
    endless = float(caught_probability(40, 3, 4, 3, 0.5))
    gaps = [float(caught_probability(40, 3, 4, 3, 0.5, accounts=n)) - endless for n in (10, 100, 1000)]
    assert 0 < gaps[2] < gaps[1] / 5 < gaps[0] / 25


def test_one_wholly_false_result_escapes_where_no_seat_is_honest() -> None:
    """70 % of the stake is honest. The chance of escape is 2.7 % with three seats of one segment each, and 30
    % with one seat that has three segments.
    """
    assert float(escape_probability(60, 60, 1, 3, 0.7)) == pytest.approx(0.027)
    assert float(escape_probability(60, 60, 3, 1, 0.7)) == pytest.approx(0.3)
    assert float(escape_probability(60, 60, 1, 3, 0.7, accounts=10)) == pytest.approx(3 * 2 / (10 * 9 * 8))
    assert float(escape_probability(60, 60, 1, 3, 0.8, accounts=10)) == 0


def test_limits() -> None:
    assert float(escape_probability(9, 0, 3, 2, 0.5)) == 1  # f -> 0
    assert float(escape_probability(9, 1, 9, 2, 1.0)) == 0  # h -> 1, q = K
    assert float(escape_probability(9, 1, 9, 2, 0.75)) == pytest.approx(1 / 16)  # q = K: (1 - h)^V
    assert float(escape_probability(9, 4, 3, 2, 0.0)) == 1  # h -> 0


def test_small_chances_keep_their_digits() -> None:
    """One of K = 2^20 segments is false, one segment is drawn, and a share h = 10^-12 of the stake is honest.
    The chance of being caught is h / K.
    """
    exact = Fraction(1, 10**12) / (1 << 20)
    assert float(caught_probability(1 << 20, 1, 1, 1, 1e-12)) == pytest.approx(float(exact), rel=1e-8)
    few = caught_probability(1 << 20, 1, 1, 2, 0.5, accounts=2)
    assert float(few) == pytest.approx(1 / (1 << 20), rel=1e-8)


def test_arguments_broadcast() -> None:
    table = caught_probability(30, 2, np.arange(1, 5)[:, None], np.arange(1, 4), 0.5)
    assert table.shape == (4, 3)
    assert table[2, 1] == float(caught_probability(30, 2, 3, 2, 0.5))
    assert np.all(np.diff(table, axis=0) > 0)
    assert np.all(np.diff(table, axis=1) > 0)


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
