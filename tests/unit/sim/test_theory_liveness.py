"""Void tasks: against every draw of small audits by the board's own rule, and at the limits of sparse and
full audits."""

from itertools import combinations, product
from math import comb

import pytest

from sim.theory import (
    TheoryError,
    draw_lost_probability,
    least_up,
    void_probability,
    void_probability_full,
    void_probability_redrawn,
    void_probability_single,
)


def satisfied(duties: dict[int, set[int]], up: frozenset[int], last: int, matches: int) -> bool:
    """AuditBoard.satisfied: A attestations for segment K, A or all for any other drawn segment."""
    for segment, holders in duties.items():
        needed = matches if segment == last else min(matches, len(holders))
        if len(holders & up) < needed:
            return False
    return True


def enumerate_voids(
    segments: int, q: int, verifiers: int, matches: int, up: float, accounts: int | None
) -> float:
    """Go through every draw and every set of answering accounts; without `accounts` each seat is its own."""
    last = segments - 1
    sets = list(combinations(range(segments), q))
    everyone = range(verifiers if accounts is None else accounts)
    seatings = [tuple(range(verifiers))] if accounts is None else list(product(everyone, repeat=verifiers))
    void = 0.0
    for n in range(len(everyone) + 1):
        for answering in map(frozenset, combinations(everyone, n)):
            chance = up**n * (1 - up) ** (len(everyone) - n) / len(seatings) / len(sets) ** verifiers
            for seats, drawn in product(seatings, product(sets, repeat=verifiers)):
                duties: dict[int, set[int]] = {last: set(seats)}
                for account, chosen in zip(seats, drawn):
                    for segment in chosen:
                        duties.setdefault(segment, set()).add(account)
                further, share = matches - len(set(seats)), 1.0
                # Further accounts for segment K alone: how often all of them are among those that answer.
                for i in range(max(0, further)):
                    share *= max(0, len(answering - set(seats)) - i) / (len(everyone) - len(set(seats)) - i)
                if further > 0:
                    void += chance * (1 - share * (set(seats) <= answering))
                else:
                    void += chance * (not satisfied(duties, answering, last, matches))
    return void


@pytest.mark.parametrize("accounts", [None, 2, 3])
@pytest.mark.parametrize(
    ("segments", "q", "verifiers", "matches"),
    [
        (3, 1, 2, 1),
        (3, 1, 2, 2),
        (4, 2, 2, 1),
        (3, 2, 3, 1),
        (3, 2, 3, 2),
        (3, 1, 3, 2),
        (1, 1, 2, 2),
        (2, 2, 3, 2),
    ],
)
def test_voids_are_those_of_all_draws(
    segments: int, q: int, verifiers: int, matches: int, accounts: int | None
) -> None:
    exact = enumerate_voids(segments, q, verifiers, matches, 0.7, accounts)
    got = void_probability(
        segments=segments,
        segments_per_verifier=q,
        verifiers=verifiers,
        matches=matches,
        up=0.7,
        accounts=accounts,
    )
    assert got == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize("matches", [1, 2, 4])
def test_a_full_audit_needs_matches_of_all(matches: int) -> None:
    got = void_probability(segments=9, segments_per_verifier=9, verifiers=4, matches=matches, up=0.8)
    assert got == pytest.approx(void_probability_full(verifiers=4, matches=matches, up=0.8), abs=1e-12)


@pytest.mark.parametrize("matches", [1, 2])
def test_a_sparse_audit_needs_everybody(matches: int) -> None:
    got = void_probability(segments=1 << 20, segments_per_verifier=4, verifiers=3, matches=matches, up=0.95)
    assert got == pytest.approx(void_probability_single(verifiers=3, up=0.95), abs=1e-5)


def test_many_accounts_are_as_good_as_endless_ones() -> None:
    audit = {"segments": 12, "segments_per_verifier": 4, "verifiers": 4, "matches": 2}
    endless = void_probability(**audit, up=0.9)
    gaps = [abs(void_probability(**audit, up=0.9, accounts=n) - endless) for n in (10, 100, 1000)]
    assert gaps[2] < gaps[1] / 5 < gaps[0] / 25
    assert gaps[2] > 0


def test_limits() -> None:
    audit = {"segments": 12, "segments_per_verifier": 4, "verifiers": 4, "matches": 2}
    assert void_probability(**audit, up=1.0, accounts=7) == pytest.approx(0, abs=1e-12)
    assert void_probability(**audit, up=0.0, accounts=7) == 1
    assert void_probability(**audit, up=1.0, accounts=1) == 1
    assert void_probability_redrawn(void=0.5, redraws=2) == 0.125
    assert draw_lost_probability(missed=0.1, most_misses=2) == pytest.approx(0.001)


def test_64_further_draws_may_not_find_enough_accounts() -> None:
    """All 16 accounts are wanted: 16 seats and 64 draws miss one of them with the chance of a coupon collector."""
    wanted = 16
    missed = sum(
        (-1) ** (i + 1) * comb(wanted, i) * (1 - i / wanted) ** (wanted + 64) for i in range(1, wanted)
    )
    audit = {"segments": 12, "segments_per_verifier": 1, "verifiers": wanted, "matches": wanted}
    assert void_probability(**audit, up=1.0, accounts=wanted) == pytest.approx(missed, abs=1e-9)
    assert missed > 0.08


def test_least_up_is_where_voids_reach_the_target() -> None:
    audit = {"segments": 12, "segments_per_verifier": 4, "verifiers": 3, "matches": 1}
    up = least_up(**audit, void=0.05)
    assert void_probability(**audit, up=up) == pytest.approx(0.05, abs=1e-9)
    assert least_up(**{**audit, "matches": 2}, void=0.5, accounts=1) == 1


def test_impossible_audits_are_refused() -> None:
    with pytest.raises(TheoryError, match="matches must be from 1 to 2, got 3"):
        void_probability(segments=5, segments_per_verifier=1, verifiers=2, matches=3, up=1)
    with pytest.raises(TheoryError, match="up must be from 0 to 1"):
        void_probability(segments=5, segments_per_verifier=1, verifiers=2, matches=1, up=1.5)
    with pytest.raises(TheoryError, match="verifiers must be at most 32, got 33"):
        void_probability(segments=5, segments_per_verifier=1, verifiers=33, matches=1, up=1, accounts=100)
