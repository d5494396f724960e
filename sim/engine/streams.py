"""Random numbers: one stream for each purpose, so that variants of a market meet the same luck.

A variant that draws more verifiers uses more numbers of the stream of draws and none of the others': bids, devices and
accidents stay the same (common random numbers). Numbers are drawn for a whole block, also where fewer rows are played,
so that the first runs stay the same when more are asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from sim.mechanism.arrays import Floats, Indices

BLOCK: Final = 2_048
"""Rows of a block. With fewer the 200 calls of a round cost more than their work; with more, small samples pay for luck
that they do not use."""


class Stream:
    """Random numbers of one purpose for `rows` markets."""

    def __init__(self, seed: np.random.SeedSequence, rows: int) -> None:
        # SFC64 passes the known test batteries and is the fastest of NumPy's.
        self.generator = np.random.Generator(np.random.SFC64(seed))
        self.rows = rows

    def uniform(self, *shape: int) -> Floats:
        """Numbers of 0 to 1, (*shape, rows)."""
        return self.generator.random((*shape, BLOCK))[..., : self.rows]

    def normal(self, *shape: int) -> Floats:
        """Standard normal numbers, (*shape, rows)."""
        return self.generator.standard_normal((*shape, BLOCK))[..., : self.rows]

    def below(self, most: int, *shape: int) -> Indices:
        """Whole numbers from 0 to below `most`, (*shape, rows)."""
        return (self.uniform(*shape) * most).astype(np.int64)


@dataclass(frozen=True)
class Streams:
    """Streams by purpose. A new one goes to the end, so that the others keep their seeds."""

    devices: Stream
    bids: Stream
    work: Stream
    accidents: Stream
    draws: Stream
    checks: Stream
    prices: Stream
    outages: Stream
    silence: Stream
    flags: Stream
    redraws: Stream
    bystanders: Stream
    submitters: Stream
    arrivals: Stream


def streams(seed: np.random.SeedSequence, rows: int) -> Streams:
    """The streams of one block of `rows` rows, at most BLOCK."""
    names = Streams.__dataclass_fields__
    return Streams(*(Stream(child, rows) for child in seed.spawn(len(names))))
