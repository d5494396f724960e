"""The default budget of a task. It is twice the least price of a solver with default settings. If tasks of
similar size were sold on the chain, it follows from their prices instead. Pure; amounts are token units.

The least price of a solver with default settings follows from three things: the task's operations, at the
solver's default speed and prices (`protocol.tasks.usual_solver`); gas; and the capital cost of the solver's
locks. A budget that follows from earlier tasks is kept between 1.25 and 4 times the least price, so an
account that pays itself for sham tasks cannot move budgets beyond these bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import median
from typing import Final

from protocol.tasks.bidding import OPENING

USUAL: Final = Fraction(2)
"""The default budget as a multiple of the least price. It leaves room for solvers that are slower or more
expensive than the default one, and for rising gas prices.
"""
LEAST: Final = Fraction(5, 4)
MOST: Final = Fraction(4)
COMPARABLE: Final = 8
"""Two tasks are comparable if their operations differ by at most this factor."""
DIGITS: Final = 2


@dataclass(frozen=True, slots=True)
class Sold:
    """A task for which a solver has been paid or will be paid: the scalar operations of its training, and its
    price.
    """

    operations: int
    price: int


def budget_of(least: int, operations: int, sold: Sequence[Sold] = ()) -> int:
    """The default budget of a training of `operations` scalar operations. It follows from `least`, which is
    the least price of a solver with default settings, and from the tasks that were `sold` before. The budget
    is rounded up to two digits, so that small changes of the gas price do not change it.
    """
    return rounded_up(_between(least, _asked(least, operations, sold)))


def comparable(operations: int, sold: Sequence[Sold]) -> list[Sold]:
    """The sold tasks of about the same size as a training of `operations` scalar operations."""
    return [
        one
        for one in sold
        if operations <= COMPARABLE * one.operations and one.operations <= COMPARABLE * operations
    ]


def rounded_up(amount: Fraction | int) -> int:
    """Round up to `DIGITS` significant digits."""
    whole = -(-amount // 1)
    unit: int = 10 ** max(0, len(str(whole)) - DIGITS)
    return int(-(-whole // unit) * unit)


def _asked(least: int, operations: int, sold: Sequence[Sold]) -> Fraction:
    alike = comparable(operations, sold)
    if not alike:
        return USUAL * least
    # A bidder without competitors asks for the share `OPENING` of the budget.
    return median(Fraction(one.price, one.operations) for one in alike) * operations / OPENING


def _between(least: int, asked: Fraction) -> Fraction:
    return min(MOST * least, max(LEAST * least, asked))
