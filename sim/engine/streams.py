"""Random numbers: one stream for each purpose, so that variants of a market meet the same ones.

A variant that draws more verifiers uses more numbers of the stream of draws and none of the others': bids, devices and
accidents stay the same (common random numbers). CHUNK runs share a generator, which draws for all of them, also where
fewer are played: so a run's numbers are its own, however many there are beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sim.mechanism.arrays import Floats, Indices

CHUNK: Final = 512
"""With more runs to a generator small samples pay for numbers that they do not use, with fewer large ones for calls."""


class Stream:
    """Random numbers of one purpose for `rows` runs: a generator for each chunk of them."""

    def __init__(self, seeds: Sequence[np.random.SeedSequence], rows: int) -> None:
        # SFC64 passes the known test batteries and is the fastest of NumPy's.
        self._generators = [np.random.Generator(np.random.SFC64(seed)) for seed in seeds]
        self._seeds = seeds
        self._rows = rows

    def of(self, number: int) -> Stream:
        """A stream of the same purpose for one round: however many numbers it gives, other rounds keep theirs."""
        return Stream([_child(seed, number) for seed in self._seeds], self._rows)

    def uniform(self, *shape: int) -> Floats:
        """Numbers of 0 to 1, (*shape, rows)."""
        return self._filled(np.random.Generator.random, shape)

    def normal(self, *shape: int) -> Floats:
        """Standard normal numbers, (*shape, rows)."""
        return self._filled(np.random.Generator.standard_normal, shape)

    def below(self, most: int, *shape: int) -> Indices:
        """Whole numbers from 0 to below `most`, (*shape, rows): floors, off by less than `most` / 2^53 of a chance."""
        return (self.uniform(*shape) * most).astype(np.int64)

    def _filled(self, draw: Callable[..., Floats], shape: tuple[int, ...]) -> Floats:
        """One chunk's numbers at a time: few live at once, so the allocator has their memory at hand."""
        whole = np.empty((*shape, len(self._generators) * CHUNK))
        for number, generator in enumerate(self._generators):
            whole[..., number * CHUNK : (number + 1) * CHUNK] = draw(generator, (*shape, CHUNK))
        return whole[..., : self._rows]


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
    redraws: Stream
    """Used by round (`Stream.of`), because only some rounds have redraws."""
    bystanders: Stream
    submitters: Stream
    arrivals: Stream
    beacon: Stream
    looks: Stream
    """Used by round, and in it by level."""


def streams(seed: np.random.SeedSequence, rows: int, first: int = 0) -> Streams:
    """The streams of `rows` runs from run number `first` on, which begins a chunk.

    Purpose p of chunk c has the seed's child c's child p. The seed itself is left as it was.
    """
    names = Streams.__dataclass_fields__
    chunks = range(first // CHUNK, -(-(first + rows) // CHUNK))
    purposes = zip(*(_child(seed, chunk).spawn(len(names)) for chunk in chunks))
    return Streams(*(Stream(seeds, rows) for seeds in purposes))


def _child(seed: np.random.SeedSequence, number: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, number))
