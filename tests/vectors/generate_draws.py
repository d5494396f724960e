"""Write draws.json: the random numbers of draws (audit.md section 2). README.md has the format.

The values come from a second implementation, in plain Python. Deterministic. Run as `python -m
tests.vectors.generate_draws`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
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

CHAIN, BOARD, ROOT = 31_337, bytes.fromhex("b0a4d0" + "00" * 17), sha256(b"root").digest()
"""The chain, the board's address and the segment tree's root of all tasks whose seats are filled."""
TRIES, TRIES_OF_DRAW = 32, 256
# (level of each account, accounts that can be drawn as bits, least level, seats): one account; accounts of
# one level and of several; levels that do not cover the lock; accounts that cannot be drawn; more seats than
# accounts; no slots; as many seats as a draw can have; and a seat that 32, or 256, tries would just miss.
FILLS: tuple[tuple[tuple[int, ...], int, int, int], ...] = (
    ((0,), 0b1, 0, 1),
    ((0, 0, 0, 0), 0b1111, 0, 3),
    ((3, 1, 0, 3, 1, 2), 0b111111, 0, 4),
    ((3, 1, 0, 3, 1, 2), 0b111111, 2, 3),
    ((5, 0, 2, 2, 4, 1, 0, 3), 0b11010111, 1, 4),
    ((1, 0, 1), 0b101, 0, 5),
    ((2, 0, 1), 0b111, 3, 2),
    ((15, 0, 7), 0b110, 0, 2),
    (tuple(n % 3 for n in range(40)), 2**40 - 1, 0, 32),
)
# (the same, without seats; the first try that finds the last account, counted from 0; seats).
LATE = (
    ((5, 0), 0b10, 0, 31, 2),
    ((5, 0), 0b10, 0, 32, 2),
    ((8, 0), 0b10, 0, 255, 9),
    ((8, 0), 0b10, 0, 256, 9),
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


def slots_of(levels: Sequence[int], least: int) -> list[int]:
    """The number of each slot's account, from 1: highest level first, then in order of registration."""
    found: list[int] = []
    for level in range(15, least - 1, -1):
        for number, own in enumerate(levels, 1):
            found += [number] * (1 << level if own == level else 0)
    return found


def fill(seed: bytes, levels: Sequence[int], able: int, least: int, seats: int) -> list[int]:
    """The number of the account in each seat; 0 if the seat stays empty."""
    slots, stream, left = slots_of(levels, least), words(seed), TRIES_OF_DRAW
    found: list[int] = []
    for _ in range(seats):
        number = 0
        for _ in range(min(TRIES, left) if slots else 0):
            left -= 1
            tried = slots[below(stream, len(slots))]
            if able >> (tried - 1) & 1 and tried not in found:
                number = tried
                break
        found.append(number)
    return found


def seed_of(task: int, word: bytes) -> bytes:
    """The seed of a task's first draw."""
    whole = (CHAIN, int.from_bytes(BOARD, "big"), task, int.from_bytes(ROOT, "big"), 1)
    return keccak(b"".join(number.to_bytes(32, "big") for number in whole) + word)


def first_try(seed: bytes, levels: Sequence[int], least: int) -> int:
    """Which try, counted from 0, is the first that finds the last account."""
    slots, stream = slots_of(levels, least), words(seed)
    return next(n for n in count() if slots[below(stream, len(slots))] == len(levels))


def filled() -> dict[str, Any]:
    """A table of draws whose seats are filled, stored as columns. Every row has its own task."""
    rows: list[tuple[Any, ...]] = []
    for levels, able, least, seats in 2 * FILLS:
        task = len(rows) + 1
        rows.append((task, sha256(f"fill {task}".encode()).digest(), levels, able, least, seats))
    for levels, able, least, due, seats in LATE:
        task = len(rows) + 1
        tried = (sha256(f"late {task} {n}".encode()).digest() for n in count())
        word = next(word for word in tried if first_try(seed_of(task, word), levels, least) == due)
        rows.append((task, word, levels, able, least, seats))
    table: dict[str, list[Any]] = {name: [] for name in ("chain", "board", "task", "root", "word", "seed")}
    table |= {name: [] for name in ("levels", "able", "least_level", "seats", "accounts")}
    for task, word, levels, able, least, seats in rows:
        seed = seed_of(task, word)
        row = (
            *(CHAIN, "0x" + BOARD.hex(), task, "0x" + ROOT.hex(), "0x" + word.hex(), "0x" + seed.hex()),
            *("0x" + bytes(levels).hex(), able, least, seats),
            "0x" + "".join(f"{number:08x}" for number in fill(seed, levels, able, least, seats)),
        )
        for column, entry in zip(table.values(), row, strict=True):
            column.append(entry)
    return table


def document() -> dict[str, Any]:
    """The whole file. Its columns describe draws of seats: the seed, the shape, the numbers drawn from the
    task's seed, and those drawn from each seat's seed. The entry `picks` has the draws of looks, `fills` the
    accounts of seats.
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
    return columns | {"picks": picked(), "fills": filled()}


def main() -> None:
    """Write the file."""
    FILE.write_text(json.dumps(document(), indent=0) + "\n")


if __name__ == "__main__":
    main()
