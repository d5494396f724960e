"""Who trains a task, and for how much: the contracts' open first-price auction, and what dispute.md section 2 adds.

Asks are (solvers, rows) whole token units; `NO_ASK` stands for a solver that does not bid.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import numpy as np

from sim.mechanism.arrays import Amounts, Flags, Indices

NO_ASK: Final = 1 << 61


class Assignment(NamedTuple):
    """By row: whether there is a winner, its number, and what it will be paid."""

    sold: Flags
    winner: Indices
    price: Amounts


Auction = Callable[[Amounts, Amounts], Assignment]
"""Asks (solvers, rows) and budgets (rows,) to an assignment."""


def first_price(asks: Amounts, budget: Amounts) -> Assignment:
    """The lowest ask wins and is paid: contracts/src/TaskMarket.sol. Of equal ones the first."""
    lowest = asks.min(axis=0)
    sold = lowest <= budget
    return Assignment(sold, _first(asks == lowest), np.where(sold, lowest, 0))


def second_price(asks: Amounts, budget: Amounts) -> Assignment:
    """The lowest ask wins and is paid the second lowest, at most the budget: not in the contracts."""
    sold, winner, lowest = first_price(asks, budget)
    if len(asks) == 1:
        return Assignment(sold, winner, np.where(sold, budget, 0))
    second = np.partition(asks, 1, axis=0)[1]
    return Assignment(sold, winner, np.where(sold, np.maximum(lowest, np.minimum(second, budget)), 0))


def _first(flags: Flags) -> Indices:
    """The first place along the first axis that is set in each row: `argmax`, which is slow over that axis."""
    places = len(flags)
    kind = np.int8 if places < 128 else np.int16
    backwards: Amounts = np.arange(places, 0, -1, dtype=kind)[:, None]
    first: Indices = places - (flags.view(np.int8) * backwards).max(axis=0).astype(np.int64)
    return first


AUCTIONS: Final[Mapping[str, Auction]] = {"first_price": first_price, "second_price": second_price}
