"""Tests of the open bidding with descending bids, and of the bound on its time. `tests/unit/vectors` compares
bids with bids.json.
"""

from __future__ import annotations

import json
from itertools import islice, pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from protocol.tasks.bidding import ladder, least_undercut, longest_overtime, percent

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "bids.json").read_text())


def rows(section: str) -> list[dict[str, int]]:
    """The rows of a section of bids.json."""
    table = VECTORS[section]
    return [dict(zip(table, map(int, row), strict=True)) for row in zip(*table.values(), strict=True)]


def test_percents_double_to_64() -> None:
    assert [percent(k) for k in range(8)] == [2, 4, 8, 16, 32, 64, 64, 64]


def test_the_longest_overtime_is_an_extension_for_each_late_bid_and_one_more() -> None:
    for row in rows("biddings"):
        assert longest_overtime(row["budget"], 7) == 7 * (row["bids"] + 1)


def test_ten_late_bids_leave_less_than_one_part_in_a_hundred() -> None:
    assert list(islice(ladder(10**20, late=True), 11))[-1] < 10**18


@given(st.integers(0, 10**30), st.booleans())
def test_a_ladder_goes_down_to_nothing(start: int, late: bool) -> None:
    steps = list(ladder(start, late=late))
    assert steps[0] == start
    assert steps[-1] == 0
    for number, (best, lower) in enumerate(pairwise(steps), 1):
        assert best - lower == least_undercut(best, number if late else 0)


@given(
    st.integers(0, 10**6),
    st.integers(1, 60),
    st.lists(st.tuples(st.integers(0, 80), st.integers(0, 100)), max_size=200),
)
def test_no_bidding_is_longer_than_the_bound(
    budget: int, extension: int, moves: list[tuple[int, int]]
) -> None:
    """Bids come at any time before the end, at any acceptable price."""
    now, until, overtime, best = 0, 100, 0, None
    for before, lower in moves:
        most = budget if best is None else best - least_undercut(best, overtime // extension)
        if most < 0:
            break
        best = max(0, most - lower)
        now = max(now, until - before)
        if now + extension > until:
            overtime, until = overtime + now + extension - until, now + extension
    assert overtime < longest_overtime(budget, extension)
