"""The bond that a commitment to a challenge locks (contracts/src/Commitments.sol, `bondOf`).

A seat locks the bond of the task's terms. Once the task has stalled, everybody locks that bond. Before that,
the bond of a party without a seat depends on how many bonds of the task are held at the time. Each of the
first sixteen is the bond of the terms. The seventeenth is twice as large, and each further one is twice the
one before it. So nobody can delay an honest game for long.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from protocol.tasks.task import GAMES_AT_ONCE
from sim.mechanism.arrays import Amounts

MOST_DOUBLINGS: Final = 96
"""After this many doublings a bond exceeds what any lock holds."""


def bond_of(bond: int, held: int) -> int:
    """The bond that a party without a seat must lock if `held` bonds of the task are held already."""
    return bond << min(max(0, held + 1 - GAMES_AT_ONCE), MOST_DOUBLINGS)


def bonds_of(bond: int, held: Amounts) -> Amounts:
    """`bond_of` for each row, as int64. A bond that overflows cannot be locked: deposits cover every locked
    bond, and deposits are below 2^62.
    """
    doublings: Amounts = np.maximum(held + 1 - GAMES_AT_ONCE, 0)
    return np.left_shift(np.int64(bond), doublings)


def most_locked(bond: int, held: int, commitments: int) -> int:
    """The total of the bonds that one account locks by making `commitments` commitments. When it makes the
    first of them, `held` bonds of the task are already held.
    """
    last = held + commitments
    doubled = range(min(max(held, GAMES_AT_ONCE), last), min(last, GAMES_AT_ONCE + MOST_DOUBLINGS))
    most = max(0, last - max(held, GAMES_AT_ONCE + MOST_DOUBLINGS))
    single = commitments - len(doubled) - most
    return single * bond + sum(bond_of(bond, each) for each in doubled) + most * (bond << MOST_DOUBLINGS)
