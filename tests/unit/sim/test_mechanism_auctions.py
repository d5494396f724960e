"""Auctions that are computed for a whole table of asks at once. The results are compared with sorted asks and
with bids made one by one.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.tasks.bidding import least_undercut
from sim.mechanism.auctions import (
    NO_ASK,
    Auction,
    bids,
    cheapest,
    descending,
    in_turn,
    late,
    posted_price,
    second_price,
)

ASKS = st.lists(st.integers(0, 12) | st.just(NO_ASK), min_size=1, max_size=6)


@pytest.mark.parametrize("dtype", [np.float64, np.int64, object])
@given(asks=ASKS, budget=st.integers(0, 12))
def test_the_lowest_ask_within_the_budget_wins(dtype: type[Any], asks: list[int], budget: int) -> None:
    """The first of equal asks wins, because a later bid must be lower."""
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


@pytest.mark.parametrize(("rule", "is_late"), [(descending, False), (late, True)])
@given(
    asks=st.lists(st.integers(0, 300) | st.just(NO_ASK), min_size=1, max_size=6),
    budgets=st.lists(st.integers(0, 300), min_size=1, max_size=4),
)
def test_bids_of_whole_tables_are_those_made_one_by_one(
    rule: Auction, is_late: bool, asks: list[int], budgets: list[int]
) -> None:
    found = rule(np.array([asks] * len(budgets)).T, np.array(budgets))
    for row, budget in enumerate(budgets):
        made = bids(asks, budget, late=is_late)
        assert bool(found.sold[row]) == bool(made)
        if made:
            assert (found.winner[row], found.price[row]) == made[-1]


@given(asks=ASKS, budget=st.integers(0, 400), is_late=st.booleans())
def test_bids_are_what_the_market_takes_and_nobody_would_make_another(
    asks: list[int], budget: int, is_late: bool
) -> None:
    made = bids(asks, budget, late=is_late)
    for number, (solver, price) in enumerate(made):
        assert asks[solver] <= price <= budget
        if number:
            beaten = made[number - 1]
            assert beaten.solver != solver
            assert beaten.price - price == least_undercut(beaten.price, number if is_late else 0)
    if not made:
        assert min(asks) > budget
        return
    last = made[-1]
    most = last.price - least_undercut(last.price, len(made) if is_late else 0)
    ranked = sorted(asks[: last.solver] + asks[last.solver + 1 :])
    # No other solver could answer the last bid.
    assert not ranked or ranked[0] > most


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
    """Three tasks, two solvers: the cheaper one takes the first task, and nobody is left for the last."""
    asks = np.array([[[5], [6]]] * 3)
    found = in_turn(asks, np.full((3, 1), 9), cheapest)
    assert found.sold.T.tolist() == [[True, True, False]]
    assert found.winner[:2].T.tolist() == [[0, 1]]
    assert found.price.T.tolist() == [[5, 6, 0]]
