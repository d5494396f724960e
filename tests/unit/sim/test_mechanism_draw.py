"""Draws: uniform subsets of segments, and seats of distinct accounts, found slot by slot as in AuditBoard."""

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.mechanism.arrays import Indices
from sim.mechanism.draw import NOBODY, TRIES, Pool, distinct


@pytest.mark.parametrize(("segments", "each"), [(1, 1), (4, 1), (5, 2), (6, 3), (6, 5), (7, 7)])
def test_every_subset_of_segments_is_drawn_equally_often(segments: int, each: int) -> None:
    draws = distinct(np.random.default_rng(7).random((each, 60_000)), segments)
    subsets = dict.fromkeys(combinations(range(1, segments + 1), each), 0)
    for subset in map(tuple, np.sort(draws, axis=0).T.tolist()):
        subsets[subset] += 1  # A KeyError means a repeated number, or a number out of bounds.
    expected, freedom = 60_000 / len(subsets), len(subsets) - 1
    surprise = sum((count - expected) ** 2 for count in subsets.values()) / expected
    assert surprise <= freedom + 4 * (2 * freedom) ** 0.5  # Chi-square: mean and 4 standard deviations.


@given(st.integers(1, 1 << 20), st.integers(1, 64), st.sampled_from([0.0, 0.5, 1 - 2**-53]))
def test_numbers_at_the_edges_give_distinct_segments(segments: int, each: int, luck: float) -> None:
    each = min(each, segments)
    found = distinct(np.full((each, 2, 3), luck), segments)[:, 1, 2].tolist()
    assert len(set(found)) == each
    assert min(found) >= 1
    assert max(found) <= segments


def nobody(rows: int) -> Indices:
    """The table of bound accounts if none is bound."""
    return np.empty((0, rows), dtype=np.int64)


def test_seats_are_drawn_by_stake_among_those_without_one() -> None:
    """Three seats are drawn from four accounts with 1, 2, 4 and 1 slots, without replacement and weighted by
    slots.
    """
    slots = (1, 2, 4, 1)
    found = Pool(np.array(slots)).seats(np.random.default_rng(3).random((3, 80_000)), nobody(80_000))
    surprise, orders = 0.0, list(permutations(range(4), 3))
    for order in orders:
        chance, left = 1.0, sum(slots)
        for account in order:
            chance, left = chance * slots[account] / left, left - slots[account]
        seen = int((found == np.array(order)[:, None]).all(axis=0).sum())
        surprise += (seen - 80_000 * chance) ** 2 / (80_000 * chance)
    freedom = len(orders) - 1
    assert surprise <= freedom + 4 * (2 * freedom) ** 0.5


@given(
    st.lists(st.sampled_from([1, 2, 4, 32]), min_size=1, max_size=8),
    st.integers(1, 6),
    st.integers(0, 2**32),
    st.data(),
)
def test_seats_are_distinct_and_nobody_bound_has_one(
    slots: list[int], count: int, seed: int, data: st.DataObject
) -> None:
    bound = data.draw(st.lists(st.integers(0, len(slots) - 1), unique=True, max_size=len(slots)))
    table = np.array([*bound, NOBODY])[:, None].repeat(5, axis=1)
    found = Pool(np.array(slots)).seats(np.random.default_rng(seed).random((count, 5)), table)
    for row in found.T.tolist():
        seated = [account for account in row if account != NOBODY]
        assert len(set(seated)) == len(seated)
        assert not set(seated) & set(bound)
        assert len(seated) <= len(slots) - len(bound)


def test_a_seat_is_empty_where_all_tries_meet_bound_accounts() -> None:
    """63 of 64 slots are bound. 32 tries find the free one with chance 1 - (63 / 64)^32."""
    rows = 40_000
    pool, bound = Pool(np.array([1, 1, 2, 60])), np.array([[0], [2], [3]]).repeat(rows, axis=1)
    found = pool.seats(np.random.default_rng(5).random((1, rows)), bound)[0]
    assert set(found.tolist()) == {NOBODY, 1}
    chance = (63 / 64) ** TRIES
    assert (found == NOBODY).mean() == pytest.approx(chance, abs=4 * (chance * (1 - chance) / rows) ** 0.5)


def test_numbers_at_the_edges_find_the_first_and_the_last_slot() -> None:
    pool = Pool(np.array([2, 1, 4]))
    uniform = np.array([[0.0, 2 / 7 - 1e-9, 2 / 7, 3 / 7 - 1e-9, 3 / 7, 1 - 2**-53]])
    assert pool.seats(uniform, nobody(6))[0].tolist() == [0, 0, 1, 1, 2, 2]
    taken = np.full((1, 6), 1)
    assert pool.seats(np.array([[0.1, 1 / 3 - 1e-9, 1 / 3 + 1e-9, 0.5, 0.9, 1 - 2**-53]]), taken)[
        0
    ].tolist() == [
        0,
        0,
        2,
        2,
        2,
        2,
    ]
