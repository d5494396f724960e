"""Open descending bids with a soft close: dispute.md section 2, "bid".

A bid moves the end of bidding to at least `extension` seconds after it; the overtime is the sum of these moves. The
least undercut is 2 % of the best bid and doubles with each whole extension in the overtime, up to 64 %. Amounts are
token units, times seconds. Pure. `contracts/src/libraries/Bids.sol` computes the same, and both replay
`tests/vectors/bids.json`.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

FIRST_PERCENT: Final = 2
MOST_DOUBLINGS: Final = 5
OPENING: Final = Fraction(9, 10)
"""Share of the budget that a solver asks first, unless its settings or its floor say otherwise."""


def percent(extensions: int) -> int:
    """Least undercut in hundredths, after that many whole extensions of overtime: 2, 4, 8, 16, 32, 64, 64, …"""
    return FIRST_PERCENT << min(extensions, MOST_DOUBLINGS)


def least_undercut(best: int, extensions: int) -> int:
    """How much lower than `best` a bid must be: rounded up, and at least one unit, so nothing undercuts a bid of 0."""
    return max(1, -(-best * percent(extensions) // 100))


def opening(budget: int) -> int:
    """The price of a first bid, rounded down."""
    return int(budget * OPENING)


def ladder(start: int, *, late: bool = False) -> Iterator[int]:
    """`start` and the bids after it, each the highest allowed, down to 0.

    By default bids come early and the end of bidding does not move. With `late`, each bid comes in the last possible
    second, and so adds an extension.
    """
    best, bids = start, 0
    while best >= 0:
        yield best
        bids += 1
        best -= least_undercut(best, bids if late else 0)


def longest_overtime(budget: int, extension: int) -> int:
    """Seconds that the overtime never reaches, no matter who bids.

    A bid moves the end by at most one extension, so different bids first take the overtime to 1, 2, … extensions, and
    each of these is at least 4, 8, … % below the one before it. There are no more of them than bids in the late
    ladder.
    """
    return (sum(1 for _ in ladder(budget, late=True)) + 1) * extension
