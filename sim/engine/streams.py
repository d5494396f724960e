"""Random numbers: one stream for each purpose, so that variants of a market use the same numbers.

For example, a variant that draws more verifiers takes more numbers from the stream of draws, but bids,
devices and accidents stay the same (common random numbers). A generator is shared by `CHUNK` runs. It always
draws numbers for all of them, so a run's numbers do not depend on how many runs are played.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sim.mechanism.arrays import Floats, Indices

CHUNK: Final = 512
"""Number of runs that share a generator. Larger chunks would waste numbers in small samples; smaller chunks
would need more calls for large samples.
"""


class Stream:
    """Random numbers of one purpose for `rows` runs, with a generator for each chunk of runs."""

    def __init__(self, seeds: Sequence[np.random.SeedSequence], rows: int) -> None:
        # SFC64 passes the known test batteries and is the fastest of NumPy's.
        self._generators = [np.random.Generator(np.random.SFC64(seed)) for seed in seeds]
        self._seeds = seeds
        self._rows = rows

    def of(self, number: int) -> Stream:
        """A stream of the same purpose for one round, or for one level within a round. `number` is that of
        the round or level. Taking numbers from this stream does not change those of other rounds or levels.
        """
        return Stream([_child(seed, number) for seed in self._seeds], self._rows)

    def uniform(self, *shape: int) -> Floats:
        """Uniform numbers in [0, 1), as an array of shape (*shape, rows)."""
        return self._filled(np.random.Generator.random, shape)

    def normal(self, *shape: int) -> Floats:
        """Standard normal numbers, (*shape, rows)."""
        return self._filled(np.random.Generator.standard_normal, shape)

    def below(self, most: int, *shape: int) -> Indices:
        """Integers in [0, `most`), as an array of shape (*shape, rows). They are uniform numbers times
        `most`, rounded down. The chance of each integer is 1 / `most`, with a relative error of less than
        2 `most` / 2^53.
        """
        return (self.uniform(*shape) * most).astype(np.int64)

    def _filled(self, draw: Callable[..., Floats], shape: tuple[int, ...]) -> Floats:
        """Draw the numbers one chunk at a time, so that few arrays are alive at once and the allocator reuses
        their memory.
        """
        whole = np.empty((*shape, len(self._generators) * CHUNK))
        for number, generator in enumerate(self._generators):
            whole[..., number * CHUNK : (number + 1) * CHUNK] = draw(generator, (*shape, CHUNK))
        return whole[..., : self._rows]


@dataclass(frozen=True)
class Streams:
    """Streams by purpose. Add new ones at the end, so that the others keep their seeds."""

    devices: Stream
    bids: Stream
    work: Stream
    accidents: Stream
    draws: Stream
    checks: Stream
    prices: Stream
    outages: Stream
    silence: Stream
    redraws: Stream
    """A separate stream for each round (`Stream.of`), because only some rounds have redraws."""
    bystanders: Stream
    submitters: Stream
    arrivals: Stream
    beacon: Stream
    looks: Stream
    """A separate stream for each round, and within a round for each level."""


def streams(seed: np.random.SeedSequence, rows: int, first: int = 0) -> Streams:
    """The streams of `rows` runs starting at run number `first`, which must begin a chunk.

    Purpose p of chunk c uses child p of the seed's child c. The seed itself is not modified.
    """
    names = Streams.__dataclass_fields__
    chunks = range(first // CHUNK, -(-(first + rows) // CHUNK))
    purposes = zip(*(_child(seed, chunk).spawn(len(names)) for chunk in chunks))
    return Streams(*(Stream(seeds, rows) for seeds in purposes))


def _child(seed: np.random.SeedSequence, number: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, number))
