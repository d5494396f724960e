"""What a task costs under three ways of choosing its solver: first price, second price, posted price.

A procurement auction: n bidders, each knowing its own cost only, independently uniform on [low, high]; the
lowest bid at most the budget r wins. Amounts are token units as floats. Standard theory (Krishna, *Auction
Theory*, 2nd edition, chapters 2 and 3), written for buying instead of selling: put t = high - c for a
bidder's value and w = high - low for the width.

`TaskMarket.bid` is an open descending first-price auction with a deadline: the price to beat stands there for
all to see. Where undercutting goes on until nobody wants to, it stops just below the second-lowest cost, as
in `second_price`; where everyone waits for the last block, bids are as good as sealed and `first_price`
holds. Both cost the same in expectation (revenue equivalence), so this matters for the spread and for unequal
bidders only. Sealed second-price bids are dispute.md section 2, beyond the contracts.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sim.theory.bounds import TheoryError, Values, count, number, within


class Market(NamedTuple):
    """`bidders` n, whose costs are uniform from `low` to `high`, and the `budget` r: no bid above it counts."""

    bidders: int
    low: float
    high: float
    budget: float


class Outcome(NamedTuple):
    """Expectations over all tasks, those without a solver counting 0: chance of a `trade`, `price` paid,
    `cost` of the winner."""

    trade: float
    price: float
    cost: float

    def surplus(self, value: float) -> float:
        """Return what the task is worth less what it costs its winner, where it is done: value x trade - cost."""
        return value * self.trade - self.cost


def checked(market: Market) -> Market:
    """Return the market; raise `TheoryError` unless n >= 1, 0 <= low < high and the budget is at least `low`."""
    count("bidders", market.bidders, 1)
    number("low", market.low, 0)
    if not market.low < market.high < np.inf:
        raise TheoryError(f"high must be above low {market.low:g}, got {market.high:g}")
    number("budget", market.budget, market.low)
    return market


def ordered_cost(market: Market, rank: int) -> float:
    """Return the mean of the `rank`-th lowest cost, budget aside: low + w rank / (n + 1).

    The rank-th of n uniform numbers on [0, 1] is Beta(rank, n + 1 - rank), whose mean is rank / (n + 1).
    """
    m = checked(market)
    return m.low + (m.high - m.low) * count("rank", rank, 1, m.bidders) / (m.bidders + 1)


def ordered_cost_variance(market: Market, rank: int) -> float:
    """Return its variance: w^2 rank (n + 1 - rank) / ((n + 1)^2 (n + 2)), that of the same Beta."""
    m, n = checked(market), market.bidders
    k = count("rank", rank, 1, n)
    return (m.high - m.low) ** 2 * k * (n + 1 - k) / ((n + 1) ** 2 * (n + 2))


def equilibrium_bid(market: Market, cost: ArrayLike) -> Values:
    """Return the first-price bid of each cost, symmetric and increasing: NaN above the budget, where none is made.

    A bidder of cost c that bids as cost x would wins with chance G(x) = ((high - x) / w)^(n - 1). The best x
    is c itself iff (beta G)' = c G', with beta(r) = r at the budget; so beta(c) = c + integral of G from c to
    r over G(c), and with r' = min(r, high)

        beta(c) = c + ((high - c)^n - (high - r')^n) / (n (high - c)^(n - 1)).

    Without a binding budget (r' = high) it is c + (high - c) / n. One bidder alone asks for the budget.
    """
    m, n = checked(market), market.bidders
    c = within("cost", cost, m.low, m.high)
    most = min(m.budget, m.high)
    if n == 1:
        return np.asarray(np.where(c <= m.budget, m.budget, np.nan))
    t = m.high - c
    scale = np.where(t > 0, t, 1.0) ** (n - 1)
    bid = c + (t**n - (m.high - most) ** n) / (n * scale)
    return np.asarray(np.where(c <= m.budget, bid, np.nan))


def first_price(market: Market) -> Outcome:
    """Return the expectations when bids are sealed and the lowest is paid itself: those of `second_price`.

    Revenue equivalence: both give the task to the lowest cost up to the budget and leave a bidder of cost r
    nothing, and these two facts fix what each cost earns (the envelope theorem behind `equilibrium_bid`). One
    bidder asks for the whole budget.
    """
    return second_price(market)


def second_price(market: Market) -> Outcome:
    """Return the expectations when the lowest bid wins and is paid the second-lowest or the budget.

    Bidding one's cost is best whatever others do: the bid decides only whether the price is taken, never the
    price. With u = (c - low) / w, R = min(1, (r - low) / w) and b = (r - low) / w, a trade happens with
    chance 1 - (1 - R)^n. The integral of P(u_(1) > t) = (1 - t)^n to R gives the cost, I = (1 - (1 - R)^(n +
    1)) / (n + 1) less R (1 - R)^n; that of P(u_(2) > t) = (1 - t)^n + n t (1 - t)^(n - 1) gives the price
    E[min(u_(2), R); u_(1) <= R] = 2 I - 2 R (1 - R)^n. For R = 1: 1 / (n + 1) and 2 / (n + 1). One bidder is
    paid b.
    """
    m, n = checked(market), market.bidders
    w = m.high - m.low
    most = min(1.0, (m.budget - m.low) / w)
    nobody = (1 - most) ** n
    integral = (1 - (1 - most) ** (n + 1)) / (n + 1)
    trade = 1 - nobody
    price = 2 * integral - 2 * most * nobody if n > 1 else trade * (m.budget - m.low) / w
    return Outcome(trade, m.low * trade + w * price, m.low * trade + w * (integral - most * nobody))


def posted_price(market: Market, *, cheapest: bool = False) -> Outcome:
    """Return the expectations when the budget is paid to one of those who would work for it, the first to come.

    A trade has chance 1 - (1 - R)^n as with bids; the price is the budget. The first to come is any of them,
    with mean cost (low + min(r, high)) / 2; `cheapest` takes the lowest instead, as if the solver were known.
    """
    m = checked(market)
    bids = second_price(m)
    mean = (m.low + min(m.budget, m.high)) / 2
    return Outcome(bids.trade, m.budget * bids.trade, bids.cost if cheapest else mean * bids.trade)


def efficiency(outcome: Outcome, market: Market, *, value: float) -> float:
    """Return the share of the greatest surplus that an outcome realises, for a task worth `value` to its submitter.

    The greatest is E[max(0, value - lowest cost)]: `second_price` with a budget of `value`. 1 for auctions
    whose budget is the value or above all costs; less where a binding budget stops good trades, or where the
    first to come is not the cheapest.
    """
    best = second_price(market._replace(budget=number("value", value, market.low))).surplus(value)
    if best <= 0:
        raise TheoryError(f"value must be above the lowest cost {market.low:g}, got {value:g}")
    return outcome.surplus(value) / best


def best_posted_price(market: Market, *, value: float) -> float:
    """Return the posted price that leaves a submitter whose task is worth `value` the most, up to `high`.

    It maximises (value - r)(1 - (1 - R)^n) with R = (r - low) / w: zero derivative means (value - r) n (1 -
    R)^(n - 1) / w = 1 - (1 - R)^n, whose left side falls and right side rises in r; bisection. For n = 1 that
    is (value + low) / 2, cut off at `high`.
    """
    m, n = checked(market), market.bidders
    w = m.high - m.low
    number("value", value, m.low)
    low, high = 0.0, min(1.0, (value - m.low) / w)

    def rises(r: float) -> bool:
        return (value - m.low - w * r) * n * (1 - r) ** (n - 1) / w > 1 - (1 - r) ** n

    if rises(high):
        return m.low + w * high
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if rises(middle) else (low, middle)
    return m.low + w * low


def shill_gain(market: Market, *, at: float, deposit: float) -> float:
    """Return what one shill bid earns the submitter of a second-price task, in token units, budget aside.

    Sealed at x = `at`, it is revealed last, and only if exactly one cost is lower: then the price is x in
    place of the second-lowest cost. Otherwise its deposit burns (dispute.md section 2). With u = (x - low) /
    w: exactly one is lower with chance n u (1 - u)^(n - 1); the next of the other n - 1 is (1 - u) / n above
    it on average; so the gain is

        w u (1 - u)^n - deposit (1 - n u (1 - u)^(n - 1)).

    Without a deposit it is largest at u = 1 / (n + 1). For n = 1 there is no second bid; the budget `high`
    stands for it.
    """
    m, n = checked(market), market.bidders
    u = (number("at", at, m.low, m.high) - m.low) / (m.high - m.low)
    alone = n * u * (1 - u) ** (n - 1)
    return (m.high - m.low) * u * (1 - u) ** n - number("deposit", deposit, 0) * (1 - alone)


def least_shill_deposit(market: Market, *, points: int = 4096) -> float:
    """Return the deposit at which no single shill bid earns anything.

    It is the most of w u (1 - u)^n / (1 - n u (1 - u)^(n - 1)) over u. Taken on a grid of `points` inner
    values of u, which bounds it from below by a relative 1 / points or so. For n = 1 it is w u (1 - u) / (1 -
    u) = w u, at most w. Several shills at once are not covered.
    """
    m, n = checked(market), market.bidders
    u = np.arange(1, count("points", points, 2) + 1) / points
    alone = n * u * (1 - u) ** (n - 1)
    gain = u * (1 - u) ** n
    return float((m.high - m.low) * np.max(np.divide(gain, 1 - alone, out=np.zeros_like(u), where=alone < 1)))
