"""Forced errors: roots that are wrong on purpose, against verifiers that do not look. Not in the contracts.

dispute.md section 3: at rate e the published root of a drawn segment is wrong by a flag that the solver committed to
and opens after the attestations. Who attested the flagged root loses a slot's stake; who differed wins the jackpot,
which is taken here from the submitter, who pays for the audit.
"""

from __future__ import annotations

import numpy as np

from sim.mechanism.arrays import Amounts, Flags, Floats, Indices, count
from sim.mechanism.booking import SUBMITTER
from sim.mechanism.ledger import Ledger


def flagged(uniform: Floats, due: Flags, rate: float) -> Flags:
    """Duties whose root is wrong, (q + 1, V, rows). Segment K, the first duty of each seat, has one root for all."""
    wrong: Flags = uniform < rate
    wrong[0] = wrong[0, 0]
    return wrong & due


def settle_flags(
    ledger: Ledger,
    rows: Indices,
    verifiers: Indices,
    flags: Flags,
    replays: Flags,
    attests: Flags,
    *,
    jackpot: int,
    penalty: int,
) -> None:
    """Jackpots for each flagged duty of seats that replayed, one penalty for seats that attested one without.

    `verifiers` (accounts), `replays`, `attests`: (V, n); `flags`: (q + 1, V, n).
    """
    wins: Amounts = np.where(replays & attests, count(flags), 0).astype(np.int64) * jackpot
    ledger.take(rows, SUBMITTER, wins.sum(axis=0))
    ledger.give(rows, verifiers, wins)
    fooled = (flags.any(axis=0) & attests & ~replays).astype(np.int64) * penalty
    ledger.take(rows, verifiers, fooled)
    ledger.burn(rows, fooled.sum(axis=0))
