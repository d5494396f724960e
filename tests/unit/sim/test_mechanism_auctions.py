"""Auctions against sorting, in floats and in the chain's amounts."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.mechanism.auctions import NO_ASK, cheapest, in_turn, posted_price, second_price

ASKS = st.lists(st.integers(0, 12) | st.just(NO_ASK), min_size=1, max_size=6)


@pytest.mark.parametrize("dtype", [np.float64, np.int64, object])
@given(asks=ASKS, budget=st.integers(0, 12))
def test_the_lowest_ask_within_the_budget_wins(dtype: type[Any], asks: list[int], budget: int) -> None:
    """Of equal ones the first, as a later bid must be lower."""
    table, most = np.array([asks, asks[::-1]], dtype=dtype).T, np.array([budget] * 2, dtype=dtype)
    first, second = cheapest(table, most), second_price(table, most)
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
        assert cheapest(asks, np.array([9, 9])).winner.tolist() == [0, winner]


@given(asks=ASKS, budget=st.integers(0, 12))
def test_a_posted_price_goes_to_the_first_that_would_work_for_it(asks: list[int], budget: int) -> None:
    found = posted_price(np.array([asks]).T, np.array([budget]))
    willing = [place for place, ask in enumerate(asks) if ask <= budget]
    assert bool(found.sold[0]) == bool(willing)
    assert int(found.price[0]) == (budget if willing else 0)
    assert int(found.winner[0]) == (willing[0] if willing else 0)


def test_who_has_won_is_busy() -> None:
    """Three tasks for two solvers; the cheaper one takes the first, and nobody is left for the last."""
    asks = np.array([[[5], [6]]] * 3)
    found = in_turn(asks, np.full((3, 1), 9), cheapest)
    assert found.sold.T.tolist() == [[True, True, False]]
    assert found.winner[:2].T.tolist() == [[0, 1]]
    assert found.price.T.tolist() == [[5, 6, 0]]
