"""Auctions: bids against every deviation, prices against quadrature and drawn tasks, deposits against shills."""

import numpy as np
import pytest

from sim.theory import (
    Market,
    Outcome,
    TheoryError,
    best_posted_price,
    efficiency,
    equilibrium_bid,
    first_price,
    least_shill_deposit,
    ordered_cost,
    ordered_cost_variance,
    posted_price,
    second_price,
    shill_gain,
)

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


@pytest.mark.parametrize("market", MARKETS)
def test_no_other_bid_earns_more(market: Market) -> None:
    """A bidder of cost c that bids as cost x would: (beta(x) - c) G(x) is largest at x = c."""
    most = min(market.budget, market.high)
    grid = np.linspace(market.low, most, 2001)
    bids = equilibrium_bid(market, grid)
    wins = ((market.high - grid) / (market.high - market.low)) ** (market.bidders - 1)
    for i in range(0, 2001, 250):
        earned = (bids - grid[i]) * wins
        assert earned[i] >= earned.max() - 1e-12
        assert bids[i] >= grid[i] - 1e-12
    # The highest cost that may bid asks for the whole budget, or for itself.
    assert bids[-1] == pytest.approx(market.budget if market.bidders == 1 else most)
    assert np.isnan(equilibrium_bid(market._replace(budget=market.low), market.high))


def test_one_bid_of_the_textbook() -> None:
    market = Market(4, 2, 6, 6)
    assert float(equilibrium_bid(market, 3.0)) == pytest.approx(3 + 3 / 4)
    assert second_price(market).price == pytest.approx(2 + 4 * 2 / 5)
    assert second_price(market).cost == pytest.approx(2 + 4 / 5)
    assert second_price(market).trade == 1


@pytest.mark.parametrize("market", MARKETS)
def test_both_prices_are_equal_by_quadrature(market: Market) -> None:
    """The integral of beta over the density of the lowest cost, n (1 - u)^(n - 1), to the budget."""
    most, w, n = min(market.budget, market.high), market.high - market.low, market.bidders
    cells = 200_000
    c = market.low + (most - market.low) * (np.arange(cells) + 0.5) / cells
    density = n * ((market.high - c) / w) ** (n - 1) / w
    paid = float(np.sum(equilibrium_bid(market, c) * density) * (most - market.low) / cells)
    assert first_price(market).price == pytest.approx(paid, rel=1e-7)


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
    assert efficiency(first_price(market), market, value=10) == pytest.approx(1)
    # Posted at 6, any of the five: cost 4 in place of 2 + 4 / 6.
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


@pytest.mark.parametrize("bidders", [1, 2, 5])
def test_shill_bids_of_drawn_tasks(bidders: int) -> None:
    market = Market(bidders, 2, 6, 6)
    costs = np.hstack([drawn_costs(market), np.full((200_000, 1), 6.0)])
    for at in (2.5, 4.0):
        shown = (costs[:, 0] < at) & (costs[:, 1] > at)
        assert near(np.where(shown, costs[:, 1] - at, -0.3), shill_gain(market, at=at, deposit=0.3))


@pytest.mark.parametrize("bidders", [2, 5])
def test_least_deposit_takes_the_gain_of_every_shill(bidders: int) -> None:
    market = Market(bidders, 2, 6, 6)
    deposit = least_shill_deposit(market)
    gains = [shill_gain(market, at=at, deposit=deposit * 1.001) for at in np.linspace(2, 6, 501)]
    assert max(gains) <= 1e-12
    assert max(shill_gain(market, at=at, deposit=deposit * 0.99) for at in np.linspace(2, 6, 501)) > 0


@pytest.mark.parametrize(
    "market", [Market(0, 1, 2, 2), Market(1, 2, 2, 2), Market(1, 2, 3, 1), Market(1, -1, 3, 3)]
)
def test_impossible_markets_are_refused(market: Market) -> None:
    with pytest.raises(TheoryError, match="must be"):
        second_price(market)
