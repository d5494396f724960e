"""Auctions against sorting, in floats and in the chain's amounts."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.mechanism.auctions import NO_ASK, first_price, second_price

ASKS = st.lists(st.integers(0, 12) | st.just(NO_ASK), min_size=1, max_size=6)


@pytest.mark.parametrize("dtype", [np.float64, np.int64, object])
@given(asks=ASKS, budget=st.integers(0, 12))
def test_the_lowest_ask_within_the_budget_wins(dtype: type[Any], asks: list[int], budget: int) -> None:
    """Of equal ones the first, as a later bid must be lower."""
    table, most = np.array([asks, asks[::-1]], dtype=dtype).T, np.array([budget] * 2, dtype=dtype)
    first, second = first_price(table, most), second_price(table, most)
    for row, mine in enumerate((asks, asks[::-1])):
        lowest, *others = sorted(mine)
        sold = lowest <= budget
        assert bool(first.sold[row]) == bool(second.sold[row]) == sold
        if sold:
            assert int(first.winner[row]) == int(second.winner[row]) == mine.index(lowest)
            assert int(first.price[row]) == lowest
            assert int(second.price[row]) == min([*others, budget])
        else:
            assert int(first.price[row]) == int(second.price[row]) == 0


@pytest.mark.parametrize("solvers", [1, 127, 128, 10_000])
def test_every_solver_can_win(solvers: int) -> None:
    for winner in (0, solvers - 1):
        asks = np.full((solvers, 2), 5.0)
        asks[winner, 1] = 4.0
        assert first_price(asks, np.array([9, 9])).winner.tolist() == [0, winner]
