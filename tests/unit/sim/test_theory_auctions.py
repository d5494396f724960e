"""Auctions: closed-form prices are compared with the prices in randomly drawn tasks, and with each other."""

from collections.abc import Callable

import numpy as np
import pytest

from sim.mechanism import auctions
from sim.theory import (
    Market,
    Outcome,
    TheoryError,
    best_posted_price,
    descending,
    efficiency,
    late,
    ordered_cost,
    ordered_cost_variance,
    posted_price,
    second_price,
    winning_price,
)

Form = Callable[[Market], Outcome]
MARKETS = [
    Market(1, 2, 6, 5),
    Market(2, 2, 6, 6),
    Market(3, 2, 6, 4.5),
    Market(20, 0, 1, 0.3),
    Market(4, 2, 6, 9),
]


def drawn_costs(market: Market, runs: int = 200_000) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    costs = np.random.default_rng(11).uniform(market.low, market.high, (runs, market.bidders))
    return np.sort(costs, axis=1)


def near(sample: np.ndarray[tuple[int], np.dtype[np.float64]], exact: float) -> bool:
    return bool(abs(sample.mean() - exact) <= 4 * sample.std() / np.sqrt(len(sample)) + 1e-12)


def test_one_bid_of_the_textbook() -> None:
    market = Market(4, 2, 6, 6)
    assert second_price(market).price == pytest.approx(2 + 4 * 2 / 5)
    assert second_price(market).cost == pytest.approx(2 + 4 / 5)
    assert second_price(market).trade == 1


@pytest.mark.parametrize("market", MARKETS)
@pytest.mark.parametrize(("form", "rule"), [(descending, auctions.descending), (late, auctions.late)])
def test_bids_of_drawn_tasks(market: Market, form: Form, rule: auctions.Auction) -> None:
    """The closed forms match the means over randomly drawn tasks. Costs are counted in units so small that
    rounding them does not matter.
    """
    fine = Market(market.bidders, *(value * 10**9 for value in market[1:]))
    costs = np.rint(np.random.default_rng(13).uniform(fine.low, fine.high, (fine.bidders, 200_000)))
    found = rule(costs, np.full(200_000, int(fine.budget)))
    spent = np.where(found.sold, np.take_along_axis(costs, found.winner[None], 0)[0], 0)
    exact = form(fine)
    for sample, value in zip((found.sold * 1.0, found.price, spent), exact):
        assert near(sample, value)


def test_descending_bids_end_within_an_undercut_of_the_second_price() -> None:
    """Descending bids have steps of 2 %, and end within 2 % of the second price. Late bids have steps of up
    to 64 %, and end higher.
    """
    for bidders in (3, 5, 20):
        market = Market(bidders, 30 * 10**6, 90 * 10**6, 90 * 10**6)
        second = second_price(market)
        assert descending(market).price == pytest.approx(second.price, rel=0.02)
        assert descending(market).cost == pytest.approx(second.cost, rel=0.002)
        assert descending(market).price < late(market).price < 1.2 * second.price


def test_prices_of_equal_costs_are_a_step_of_the_ladder() -> None:
    assert winning_price(Market(1, 10, 10, 100)) == 90
    assert winning_price(Market(1, 95, 95, 100)) == winning_price(Market(5, 95, 95, 100)) == 95
    # The ladder is 90, 88, 86, 84, 82, 80, …
    assert winning_price(Market(2, 85, 85, 100)) == 86
    market = Market(5, 2 * 10**9, 6 * 10**9, 6 * 10**9)
    assert winning_price(market) == descending(market).price


@pytest.mark.parametrize("market", MARKETS)
def test_second_and_posted_prices_of_drawn_tasks(market: Market) -> None:
    costs = drawn_costs(market)
    trade = costs[:, 0] <= market.budget
    second = np.full(len(costs), market.budget)
    if market.bidders > 1:
        second = np.minimum(costs[:, 1], market.budget)
    exact = second_price(market)
    for sample, value in zip((trade * 1.0, trade * second, trade * costs[:, 0]), exact):
        assert near(sample, value)
    willing = (costs <= market.budget).sum(axis=1)
    first = np.random.default_rng(3).integers(0, np.maximum(willing, 1))
    chosen = costs[np.arange(len(costs)), first]
    posted = posted_price(market)
    for sample, value in zip((trade * 1.0, trade * market.budget, trade * chosen), posted):
        assert near(sample, value)
    assert posted_price(market, cheapest=True).cost == exact.cost


def test_order_statistics_of_drawn_costs() -> None:
    market = Market(5, 2, 6, 6)
    costs = drawn_costs(market)
    for rank in range(1, 6):
        assert near(costs[:, rank - 1], ordered_cost(market, rank))
        assert costs[:, rank - 1].var() == pytest.approx(ordered_cost_variance(market, rank), rel=0.02)


def test_auctions_lose_nothing_and_posted_prices_do() -> None:
    market = Market(5, 2, 6, 6)
    assert efficiency(second_price(market), market, value=10) == pytest.approx(1)
    fine = Market(5, 2e9, 6e9, 6e9)
    assert efficiency(descending(fine), fine, value=10e9) == pytest.approx(1, abs=0.001)
    # At a posted price of 6 any of the five works, at a mean cost of 4 instead of 2 + 4 / 6.
    assert efficiency(posted_price(market), market, value=10) == pytest.approx(6 / (10 - 2 - 4 / 6))
    bound = second_price(market._replace(budget=3))
    assert efficiency(bound, market, value=10) < 1
    assert Outcome(0.5, 1, 2).surplus(10) == 3


@pytest.mark.parametrize("bidders", [1, 2, 7])
@pytest.mark.parametrize("value", [3.0, 8.0, 50.0])
def test_best_posted_price_beats_a_grid(bidders: int, value: float) -> None:
    market = Market(bidders, 2, 6, 6)
    price = best_posted_price(market, value=value)

    def left(r: float) -> float:
        return (value - r) * posted_price(market._replace(budget=r)).trade

    grid = [left(r) for r in np.linspace(2, 6, 401)]
    assert left(price) >= max(grid) - 1e-9 * value
    if bidders == 1 and value == 8:
        assert price == pytest.approx(5)


@pytest.mark.parametrize(
    "market", [Market(0, 1, 2, 2), Market(1, 2, 2, 2), Market(1, 2, 3, 1), Market(1, -1, 3, 3)]
)
def test_impossible_markets_are_refused(market: Market) -> None:
    with pytest.raises(TheoryError, match="must be"):
        second_price(market)
