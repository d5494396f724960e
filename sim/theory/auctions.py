"""The cost of a task under three ways of choosing its solver: descending bids, second price, posted price.

There are n bidders. Each bidder knows only its own cost; costs are independent and uniform on [low, high]. In
the first two ways, the lowest bid wins if it is at most the budget r. With a posted price, the first bidder
that would work for the budget wins. Amounts are token units as floats. This is standard theory (Krishna,
*Auction Theory*, 2nd edition, chapters 2 and 3), written for buying instead of selling, with w = high - low.

`TaskMarket.bid` is an open descending auction with a soft close: a late bid extends the bidding. So nobody
gains by waiting for the last block, and bidders answer each other's bids. This ends when the bidder with the
second-lowest cost stops, because the next price is below its cost. The result is that of `second_price`,
except for the size of the steps, which `descending` accounts for exactly.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from protocol.tasks.bidding import ladder, opening
from sim.theory.bounds import TheoryError, count, number


class Market(NamedTuple):
    """`bidders` n, whose costs are uniform from `low` to `high`, and the `budget` r. Bids above the budget do
    not count.
    """

    bidders: int
    low: float
    high: float
    budget: float


class Outcome(NamedTuple):
    """Expectations per task: the chance of a `trade`, the `price` paid, and the winner's `cost`. A task
    without a solver counts as 0.
    """

    trade: float
    price: float
    cost: float

    def surplus(self, value: float) -> float:
        """Return the expected value of the task minus the winner's cost: value x trade - cost."""
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
    """Return the mean of the `rank`-th lowest cost, ignoring the budget: low + w rank / (n + 1).

    The rank-th of n uniform numbers on [0, 1] is Beta(rank, n + 1 - rank), whose mean is rank / (n + 1).
    """
    m = checked(market)
    return m.low + (m.high - m.low) * count("rank", rank, 1, m.bidders) / (m.bidders + 1)


def ordered_cost_variance(market: Market, rank: int) -> float:
    """Return the variance of the `rank`-th lowest cost: w^2 rank (n + 1 - rank) / ((n + 1)^2 (n + 2)).

    It follows from the Beta distribution of `ordered_cost`.
    """
    m, n = checked(market), market.bidders
    k = count("rank", rank, 1, n)
    return (m.high - m.low) ** 2 * k * (n + 1 - k) / ((n + 1) ** 2 * (n + 2))


def descending(market: Market, *, late: bool = False) -> Outcome:
    """Return the expected outcome of open bids. Each bid undercuts the one before by the least undercut, so
    bids go down the ladder G_0 > G_1 > …. By default, all bids come early. With `late`, each bid comes in the
    last second.

    As in `sim.mechanism.auctions.descending`, the bidder with the lowest cost L opens at G_0. This bidder and
    the one with the second-lowest cost S then take turns, as long as their costs are no higher than the next
    price. Let G_k be the last price with S <= G_k. If k is even, the bidder with cost L has bid G_k, and wins
    at this price. If k is odd, the bidder with cost S has bid G_k. The bidder with cost L then answers and
    wins at G_(k + 1) if L <= G_(k + 1); otherwise the bidder with cost S wins at G_k. If S > G_0, the bidder
    with cost L wins at G_0, or at L itself if L > G_0. Let F be the uniform distribution function of the
    costs, a = 1 - F(G_(k + 1)) and b = 1 - F(G_k). P(k, C) is the chance that G_k is the last price with S <=
    G_k and that the condition C holds:

        P(k, L <= G_(k + 1)) = n (1 - a) (a^(n - 1) - b^(n - 1)),
        P(k, L > G_(k + 1)) = a^n - b^n - n (a - b) b^(n - 1)

    If the bidder with cost S wins, the winner's cost is S instead of L. What this adds to the expected cost,
    for each odd k, is the expectation of S - L. This is the integral of P(L <= x < S) over the step, for x
    from G_(k + 1) to G_k:

        n w (a (a^n - b^n) / n - (a^(n + 1) - b^(n + 1)) / (n + 1) - b^(n - 1) (a - b)^2 / 2)
    """
    m, n = checked(market), market.bidders
    w, start = m.high - m.low, opening(int(m.budget))
    outcome = second_price(m)

    def above(x: float) -> float:
        return 1 - min(max((x - m.low) / w, 0.0), 1.0)

    b = above(start)
    # Nobody answers: L <= G_0 < S, then the part of E[L; L <= r] that is above G_0.
    price = start * n * (1 - b) * b ** (n - 1)
    price += outcome.cost - second_price(m._replace(budget=max(m.low, start))).cost
    cost = outcome.cost
    for k, (here, lower) in enumerate(pairwise([*ladder(start, late=late), 0])):
        if here <= m.low:
            break
        a, b = above(lower), above(here)
        first = n * (1 - a) * (a ** (n - 1) - b ** (n - 1))
        both = a**n - b**n - n * (a - b) * b ** (n - 1)
        price += (first + both) * here if k % 2 == 0 else first * lower + both * here
        if k % 2:
            later = a * (a**n - b**n) / n - (a ** (n + 1) - b ** (n + 1)) / (n + 1)
            cost += n * w * (later - b ** (n - 1) * (a - b) ** 2 / 2)
    return Outcome(outcome.trade, price, cost)


def late(market: Market) -> Outcome:
    """Return the expectations of `descending` if each bid comes in the last second, which doubles the undercut."""
    return descending(market, late=True)


def winning_price(market: Market) -> float:
    """Return the mean price of a task that is sold by descending bids. Here, `low` may equal `high`.

    In that case all bidders have the same cost c, and the price is the last step that is at least c, no
    matter which bidder bid it. If there is only one bidder, or if c is above the first step, the price is the
    larger of c and the first step.
    """
    if market.low < market.high:
        outcome = descending(market)
        return outcome.price / outcome.trade
    start = opening(int(market.budget))
    if market.bidders == 1 or market.low > start:
        return max(market.low, start)
    return min(price for price in ladder(start) if price >= market.low)


def second_price(market: Market) -> Outcome:
    """Return the expectations if the lowest bid wins and is paid the second-lowest bid, but at most the
    budget.

    Bidding its cost is best for each bidder, whatever the others bid: a bid decides only whether the bidder
    wins, never the price. On the scale of u = (c - low) / w for a cost c, let u_(1) and u_(2) be the lowest
    and the second-lowest of the n values. Let b = (r - low) / w be the budget on this scale, and R = min(1,
    b). A trade happens with chance 1 - (1 - R)^n. On the scale of u, the cost and the price are as follows:

    - The cost is I - R (1 - R)^n. Here I = (1 - (1 - R)^(n + 1)) / (n + 1) is the integral of P(u_(1) > t) =
      (1 - t)^n from 0 to R.
    - With two or more bidders, the price is E[min(u_(2), R); u_(1) <= R] = 2 I - 2 R (1 - R)^n. It follows from
      the integral of P(u_(2) > t) = (1 - t)^n + n t (1 - t)^(n - 1). A single bidder is paid b.

    For R = 1, the cost is 1 / (n + 1). With two or more bidders, the price is then 2 / (n + 1).
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
    """Return the expectations if the budget is paid to the first bidder that would work for it.

    The chance of a trade is 1 - (1 - R)^n, as with bids; the price is the budget. The first bidder is a
    random one of those that would accept the budget, with mean cost (low + min(r, high)) / 2. `cheapest`
    takes the cheapest bidder instead, as if it were known.
    """
    m = checked(market)
    bids = second_price(m)
    mean = (m.low + min(m.budget, m.high)) / 2
    return Outcome(bids.trade, m.budget * bids.trade, bids.cost if cheapest else mean * bids.trade)


def efficiency(outcome: Outcome, market: Market, *, value: float) -> float:
    """Return an outcome's surplus as a share of the greatest possible surplus, for a task worth `value` to
    its submitter.

    The greatest surplus is E[max(0, value - lowest cost)], which `second_price` reaches with a budget of
    `value`. The share is 1 if the cheapest bidder always wins and one of two conditions holds: the budget
    equals the value, or budget and value are both above all costs. The share is less if a binding budget
    prevents good trades, or if the winner is not the cheapest bidder.
    """
    best = second_price(market._replace(budget=number("value", value, market.low))).surplus(value)
    if best <= 0:
        raise TheoryError(f"value must be above the lowest cost {market.low:g}, got {value:g}")
    return outcome.surplus(value) / best


def best_posted_price(market: Market, *, value: float) -> float:
    """Return the posted price, up to `high`, that leaves the most to a submitter whose task is worth `value`.

    It maximises (value - r)(1 - (1 - R)^n) with R = (r - low) / w. The derivative is zero if (value - r) n (1
    - R)^(n - 1) / w = 1 - (1 - R)^n. The left side falls in r and the right side rises, so bisection finds r.
    For n = 1, r is (value + low) / 2, but at most `high`.
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
