"""How a task finds its solver and price: the contracts' open descending bids, and other formats to compare.

Asks are (solvers, rows) whole token units: the lowest price at which each solver would work. `NO_ASK` marks
a solver that does not bid.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from protocol.tasks.bidding import ladder, opening
from sim.mechanism.arrays import Amounts, Flags, Floats, Indices

NO_ASK: Final = 1 << 61


class Assignment(NamedTuple):
    """For each row, whether the task has a winner, the winner's number, and the price."""

    sold: Flags
    winner: Indices
    price: Amounts


Auction = Callable[[Amounts, Amounts], Assignment]
"""Maps asks (solvers, rows) and budgets (rows,) to an assignment."""


class Bid(NamedTuple):
    """A solver's number, and the price that it bids."""

    solver: int
    price: int


def bids(asks: Sequence[int], budget: int, *, late: bool = False) -> list[Bid]:
    """All bids for one task in order, by the rule of `descending` or `late`; the last one wins. `asks` has at
    least one element. If no ask is at most the budget, nobody bids, and the list is empty.
    """
    ranked = sorted(range(len(asks)), key=lambda number: asks[number])[:2]
    if asks[ranked[0]] > budget:
        return []
    start = opening(budget)
    if asks[ranked[0]] > start:
        return [Bid(ranked[0], asks[ranked[0]])]
    made: list[Bid] = []
    for place, price in enumerate(ladder(start, late=late)):
        if place and (len(ranked) < 2 or asks[ranked[place % 2]] > price):
            break
        made.append(Bid(ranked[place % 2], price))
    return made


def descending(asks: Amounts, budget: Amounts) -> Assignment:
    """The auction of contracts/src/TaskMarket.sol: open bids that go down. Solvers bid as the node does
    (`protocol.tasks.offers`).

    The solver with the lowest ask opens. Then the two solvers with the lowest asks undercut each other, each
    time by the minimum, until one of them reaches its ask. Other solvers drop out early and do not change the
    price. All bids come early, so the minimum undercut does not grow.
    """
    return _descend(asks, budget, late=False)


def late(asks: Amounts, budget: Amounts) -> Assignment:
    """The assignment of `descending` if each bid comes in the last second, and so extends the bidding and
    doubles the minimum undercut.
    """
    return _descend(asks, budget, late=True)


def _descend(asks: Amounts, budget: Amounts, *, late: bool) -> Assignment:
    sold, winner, price = cheapest(asks, budget)
    lowest, others = asks.min(axis=0), asks.copy()
    others[winner, np.arange(len(winner))] = NO_ASK
    second = others.min(axis=0)
    for most in np.unique(budget):
        start, prices = _ladder(int(most), late)
        here = sold & (budget == most)
        price = np.where(here & (lowest <= start), start, price)
        rows = (here & (second <= start)).nonzero()[0]
        if not len(rows):
            continue
        place = np.searchsorted(-prices, -second[rows], side="right") - 1
        theirs = place % 2 == 1
        answered = theirs & (lowest[rows] <= prices[place + 1])
        price[rows] = prices[place + answered]
        lost = rows[theirs & ~answered]
        winner[lost] = others[:, lost].argmin(axis=0)
    return Assignment(sold, winner, price)


@lru_cache(maxsize=64)
def _ladder(budget: int, late: bool) -> tuple[int, Amounts]:
    """The opening bid, and the prices of all bids from the opening bid down to 0. After 0 comes -1, which is
    below all asks.
    """
    start = opening(budget)
    return start, np.array([*ladder(start, late=late), -1])


def cheapest(asks: Amounts, budget: Amounts) -> Assignment:
    """If the lowest ask is at most the budget, it wins and is paid; otherwise the task is not sold. Of equal
    asks, the first wins.
    """
    lowest = asks.min(axis=0)
    sold = lowest <= budget
    return Assignment(sold, _first(asks == lowest), np.where(sold, lowest, 0))


def second_price(asks: Amounts, budget: Amounts) -> Assignment:
    """The lowest ask wins and is paid the second-lowest, but at most the budget. Not in the contracts."""
    sold, winner, lowest = cheapest(asks, budget)
    if len(asks) == 1:
        return Assignment(sold, winner, np.where(sold, budget, 0))
    second = np.partition(asks, 1, axis=0)[1]
    return Assignment(sold, winner, np.where(sold, np.maximum(lowest, np.minimum(second, budget)), 0))


def posted_price(asks: Amounts, budget: Amounts) -> Assignment:
    """The first solver that asks at most the budget wins and is paid the budget. Not in the contracts.

    Costs are identically distributed, so solvers can be assumed to arrive in the order of their numbers.
    """
    willing = asks <= budget
    sold: Flags = np.logical_or.reduce(willing, axis=0)
    return Assignment(sold, _first(willing | ~sold), np.where(sold, budget, 0))


def weakest(strength: Floats) -> Auction:
    """An auction in which the weakest solver that asks at most the budget wins and is paid its ask. Not in
    the contracts.

    `strength` (solvers, rows) is assumed to be known, although nothing certifies it (decision 45). A solver
    that cannot meet a task's deadline does not bid on it.
    """

    def auction(asks: Amounts, budget: Amounts) -> Assignment:
        able = np.where(asks <= budget, strength, np.inf)
        sold: Flags = np.logical_or.reduce(np.isfinite(able), axis=0)
        winner = able.argmin(axis=0)
        price = np.take_along_axis(asks, winner[None], axis=0)[0]
        return Assignment(sold, winner, np.where(sold, price, 0))

    return auction


def in_turn(asks: Amounts, budget: Amounts, auction: Auction) -> Assignment:
    """Sell concurrent tasks one after another. The winner of a task cannot win a later one.

    Asks are (tasks, solvers, rows); budgets and all fields of the result are (tasks, rows).
    """
    free = np.ones(asks.shape[1:], dtype=np.bool_)
    results = []
    for own, most in zip(asks, budget):
        result = auction(np.where(free, own, NO_ASK), most)
        rows = result.sold.nonzero()[0]
        free[result.winner[rows], rows] = False
        results.append(result)
    return Assignment(*(np.stack(part) for part in zip(*results)))


def _first(flags: Flags) -> Indices:
    """For each row, the lowest index along axis 0 at which a flag is set. This is faster than `argmax` on
    that axis.
    """
    places = len(flags)
    kind = np.int8 if places < 128 else np.int16
    backwards: Amounts = np.arange(places, 0, -1, dtype=kind)[:, None]
    first: Indices = places - (flags.view(np.int8) * backwards).max(axis=0).astype(np.int64)
    return first


AUCTIONS: Final[Mapping[str, Auction]] = {
    "descending": descending,
    "late": late,
    "second_price": second_price,
    "posted_price": posted_price,
}
