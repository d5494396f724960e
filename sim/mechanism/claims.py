"""Which seats can claim their fee from the stake of a convicted solver (contracts/src/Commitments.sol, `payFee`)."""

from __future__ import annotations

import numpy as np

from sim.mechanism.arrays import Flags
from sim.mechanism.draw import Segments

NO_SEGMENT = 0
"""Stands for the missing segment if a game named no segment, or if a conviction came from a game that named none."""


def fees_owed(attested: Flags, spoke: Flags, segments: Segments, convicted: Segments) -> Flags:
    """Whether each seat is owed its fee and nothing else, as an array (V, n). This holds for seats that
    attested, did not challenge, and do not hold the convicted segment.

    `segments` are the seats' segments, (q, V, n); `convicted` is the convicted segment of each row, (n,).
    """
    vouched: Flags = (segments == convicted).any(axis=0)
    return np.asarray(attested & ~spoke & ~vouched)
