"""Write draws.json: the random numbers of draws (audit.md section 2). README.md has the format.

The values come from a second implementation, in plain Python. Deterministic. Run as `python -m
tests.vectors.generate_draws`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

from eth_utils.crypto import keccak

from protocol.numerics.reference.philox import block

FILE = Path(__file__).with_name("draws.json")
WORD = 2**32
# (slots, segments, seats, segments per seat): few and many of each, and more than there are. 3 * 2^30
# slots reject a quarter of words.
SHAPES = (
    (1, 1, 1, 1),
    (6, 5, 3, 2),
    (7, 8, 4, 8),
    (3 * 2**30, 2**20, 8, 8),
    (2**32 - 1, 1000, 32, 4),
    (2**31 + 1, 64, 1, 64),
    (5, 3, 2, 7),
)

# (candidates as bits, chance in hundredths of a percent, room): one, some or all candidates; few or all
# picked; too little room.
PICKS = (
    (1, 1_000, 1),
    (0b111, 1_000, 3),
    (0b101101, 5_000, 4),
    (2**32 - 1, 1_000, 32),
    (2**32 - 1, 5_000, 7),
    (2**32 - 1, 10_000, 32),
    (2**31, 9_999, 1),
    (0xF0F0_0001, 10_000, 5),
    (2**32 - 1, 1, 32),
    (2**32 - 1, 5_000, 0),
)


def words(seed: bytes) -> Iterator[int]:
    """The words of a draw: Philox blocks 0, 1, … The key consists of the seed's lowest 32-bit word and the
    next higher one.
    """
    number = int.from_bytes(seed, "big")
    key = (number % WORD, number // WORD % WORD)
    return (word for n in count() for word in block((n, 0, 0, 0), key))


def below(stream: Iterator[int], m: int) -> int:
    """A uniform number below m, by rejection."""
    return next(word for word in stream if word < WORD - WORD % m) % m


def distinct(stream: Iterator[int], k: int, q: int) -> list[int]:
    """min(q, k) distinct numbers of 1 … k (Floyd's algorithm)."""
    chosen: list[int] = []
    for top in range(k - min(q, k) + 1, k + 1):
        number = 1 + below(stream, top)
        chosen.append(top if number in chosen else number)
    return chosen


def picks(stream: Iterator[int], candidates: int, chance: int, room: int) -> int:
    """The candidates that a draw picks, at most `room`. In `candidates` and in the result, bit i is candidate i."""
    picked = 0
    for bit in range(32):
        if candidates >> bit & 1 and picked.bit_count() < room:
            picked |= (below(stream, 10_000) < chance) << bit
    return picked


def picked() -> dict[str, Any]:
    """A table of draws of looks, stored as columns. The column `picked` has the candidates that each draw picks."""
    rows = [(sha256(f"looks {i}".encode()).digest(), *PICKS[i % len(PICKS)]) for i in range(3 * len(PICKS))]
    columns = {
        name: [row[i] for row in rows] for i, name in enumerate(("candidates", "look_chance", "room"), 1)
    }
    found = [picks(words(seed), *rest) for seed, *rest in rows]
    return {"seed": ["0x" + seed.hex() for seed, *_ in rows], **columns, "picked": found}


def document() -> dict[str, Any]:
    """The whole file. Its columns describe draws of seats: the seed, the shape, the numbers drawn from the
    task's seed, and those drawn from each seat's seed. The entry `picks` has the draws of looks.
    """
    seeds = [sha256(f"draw {i}".encode()).digest() for i in range(4 * len(SHAPES))]
    shapes = [SHAPES[i % len(SHAPES)] for i in range(len(seeds))]
    tried, segments = [], []
    for seed, (slots, most, seats, q) in zip(seeds, shapes):
        stream = words(seed)
        tried.append([below(stream, slots) for _ in range(seats)])
        seats_words = (words(keccak(seed + seat.to_bytes(32, "big"))) for seat in range(seats))
        segments.append([number for stream in seats_words for number in distinct(stream, most, q)])
    columns: dict[str, Any] = {"seed": ["0x" + seed.hex() for seed in seeds]}
    for position, name in enumerate(("slots", "segments", "seats", "segments_per_verifier")):
        columns[name] = [shape[position] for shape in shapes]
    for name, rows in (("slots_tried", tried), ("seat_segments", segments)):
        columns[name] = ["0x" + "".join(f"{n:08x}" for n in row) for row in rows]
    return columns | {"picks": picked()}


def main() -> None:
    """Write the file."""
    FILE.write_text(json.dumps(document(), indent=0) + "\n")


if __name__ == "__main__":
    main()
