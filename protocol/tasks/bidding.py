"""Open descending bids with a soft close: dispute.md section 2, "bid".

After each bid, bidding continues for at least `extension` seconds. The overtime is the total time by which
bids have postponed the end. The least undercut is 2 % of the best bid, and doubles with each whole extension
in the overtime, up to 64 %. Amounts are token units, times are seconds. Pure.
`contracts/src/libraries/Bids.sol` computes the same; both are tested with `tests/vectors/bids.json`.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

FIRST_PERCENT: Final = 2
MOST_DOUBLINGS: Final = 5
OPENING: Final = Fraction(9, 10)
"""Share of the budget that a solver's first bid asks for, unless the solver's settings give another share. If
the solver's floor price is higher, the first bid asks for the floor price.
"""


def percent(extensions: int) -> int:
    """Least undercut in percent after `extensions` whole extensions of overtime: 2, 4, 8, 16, 32, 64, 64, …"""
    return FIRST_PERCENT << min(extensions, MOST_DOUBLINGS)


def least_undercut(best: int, extensions: int) -> int:
    """How much lower than `best` a bid must be, rounded up. It is at least one unit, so nothing undercuts a
    bid of 0.
    """
    return max(1, -(-best * percent(extensions) // 100))


def opening(budget: int) -> int:
    """The price of a first bid, rounded down."""
    return int(budget * OPENING)


def ladder(start: int, *, late: bool = False) -> Iterator[int]:
    """`start` and the bids after it, each as high as allowed, down to 0.

    By default, bids come early and do not postpone the end of bidding. With `late`, each bid comes in the
    last possible second and adds a whole extension.
    """
    best, bids = start, 0
    while best >= 0:
        yield best
        bids += 1
        best -= least_undercut(best, bids if late else 0)


def longest_overtime(budget: int, extension: int) -> int:
    """An upper bound in seconds, which the overtime never reaches, no matter how parties bid.

    One bid postpones the end by at most one extension. So the overtime first reaches 1, 2, 3, … extensions
    in different bids. The bid that first reaches 2 extensions is at least 4 % below the bid that first
    reached 1. The bid that first reaches 3 is at least 8 % below the bid that first reached 2, and so on.
    There cannot be more of these bids than the late ladder has.
    """
    return (sum(1 for _ in ladder(budget, late=True)) + 1) * extension
