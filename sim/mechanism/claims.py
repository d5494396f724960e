"""Which seats have a claim on the fee out of a convicted stake (contracts/src/Commitments.sol, `payFee`)."""

from __future__ import annotations

import numpy as np

from sim.mechanism.arrays import Flags
from sim.mechanism.draw import Segments

NO_SEGMENT = 0
"""Stands in place of a segment if a game named none, or if a conviction came from such a game."""


def fees_owed(attested: Flags, spoke: Flags, segments: Segments, convicted: Segments) -> Flags:
    """Seats that are owed only their fee, (V, n): they attested, did not challenge, and do not hold the
    convicted segment.

    `segments` are the seats' segments, (q, V, n); `convicted` is the convicted segment of each row, (n,).
    """
    vouched: Flags = (segments == convicted).any(axis=0)
    return np.asarray(attested & ~spoke & ~vouched)
