"""Write walks.json: which chunk a walk names (audit.md section 7). README.md has the format.

The chunk is found by comparing the walk with the turns of every chunk, instead of following the walk down the
tree. Deterministic. Run as `python -m tests.vectors.generate_walks`.
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.vectors.generate_digests import columns, numbers

FILE = Path(__file__).with_name("walks.json")
COUNTS = range(1, 21)
"""The tensors have these numbers of chunks."""
BITS = 32


def walks(count: int) -> list[int]:
    """A walk to each chunk of a tensor, with arbitrary bits below the leaf. After these come four more: the
    walk whose bits are all 0, the walk whose bits are all 1, and two arbitrary walks.
    """
    found = []
    for index, (turns, depth) in enumerate(numbers(count)):
        found.append(turns << BITS - depth | some(count, index) >> depth)
    return [*found, 0, (1 << BITS) - 1, some(count, count), some(count, count + 1)]


def some(count: int, number: int) -> int:
    """32 bits derived from two numbers."""
    return int.from_bytes(sha256(f"walk {number} of {count}".encode()).digest()[:4], "big")


def named(count: int, walk: int) -> tuple[int, int, int]:
    """The only chunk whose turns are the beginning of the walk; also that chunk's turns and depth."""
    ((index, turns, depth),) = [
        (index, turns, depth)
        for index, (turns, depth) in enumerate(numbers(count))
        if walk >> BITS - depth == turns
    ]
    return index, turns, depth


def document() -> dict[str, Any]:
    """The whole file as JSON values."""
    rows = [(count, walk, *named(count, walk)) for count in COUNTS for walk in walks(count)]
    return columns("chunks walk chunk turns depth", rows)


def main() -> None:
    """Write the file."""
    FILE.write_text(json.dumps(document(), indent=0) + "\n")


if __name__ == "__main__":
    main()
