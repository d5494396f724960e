"""Who trains a task, and for how much: the contracts' open first-price auction, and what dispute.md section 2 adds.

Asks are (rows, solvers) token units; `NO_ASK` stands for a solver that does not bid.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import numpy as np

from sim.mechanism.arrays import Amounts, Flags, Indices

NO_ASK: Final = np.int64(1 << 61)


class Assignment(NamedTuple):
    """By row: whether there is a winner, its number, and what it will be paid."""

    sold: Flags
    winner: Indices
    price: Amounts


Auction = Callable[[Amounts, Amounts], Assignment]
"""Asks (rows, solvers) and budgets (rows,) to an assignment."""


def first_price(asks: Amounts, budget: Amounts) -> Assignment:
    """The lowest ask wins and is paid: contracts/src/TaskMarket.sol. Of equal ones the first."""
    winner = asks.argmin(axis=1)
    price = np.take_along_axis(asks, winner[:, None], axis=1)[:, 0]
    sold = price <= budget
    return Assignment(sold, winner, np.where(sold, price, 0))


def second_price(asks: Amounts, budget: Amounts) -> Assignment:
    """The lowest ask wins and is paid the second lowest, at most the budget: not in the contracts."""
    sold, winner, lowest = first_price(asks, budget)
    if asks.shape[1] == 1:
        return Assignment(sold, winner, np.where(sold, budget, 0))
    second = np.partition(asks, 1, axis=1)[:, 1]
    return Assignment(sold, winner, np.where(sold, np.maximum(lowest, np.minimum(second, budget)), 0))


AUCTIONS: Final[Mapping[str, Auction]] = {"first_price": first_price, "second_price": second_price}
