"""Which seats have a claim on the fee out of a convicted stake (contracts/src/Commitments.sol, `payFee`)."""

from __future__ import annotations

import numpy as np

from sim.mechanism.arrays import Flags
from sim.mechanism.draw import Segments

NO_SEGMENT = 0
"""Segment of a game that named none, and of a conviction in such a game."""


def fees_owed(attested: Flags, spoke: Flags, segments: Segments, convicted: Segments) -> Flags:
    """Seats that are owed only their fee, (V, n): attested, without a challenge, and without the convicted
    segment.

    `segments` are those of the seats, (q, V, n), and `convicted` is the convicted one of each row, (n,).
    """
    vouched: Flags = (segments == convicted).any(axis=0)
    return np.asarray(attested & ~spoke & ~vouched)
