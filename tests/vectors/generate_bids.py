"""Write bids.json: least undercuts and whole biddings that pytest and forge both replay.

The values come from a second implementation, with fractions and loops. README.md has the format.
Deterministic. Run as `python -m tests.vectors.generate_bids`.
"""

from __future__ import annotations

import json
from fractions import Fraction
from hashlib import sha256
from math import ceil
from pathlib import Path

FILE = Path(__file__).with_name("bids.json")
BESTS = (0, 1, 2, 3, 24, 25, 26, 49, 50, 51, 99, 100, 101, 10**18, 10**20 - 1, 2**94 - 1, 2**128 - 1)
EXTENSIONS = (1, 7, 3_600, 2**32 - 1)
BUDGETS = (0, 1, 2, 3, 100, 10**6, 10**20, 2**94 - 1)


def undercut(best: int, overtime: int, extension: int) -> int:
    """The least undercut of the bid `best`: a share of it, rounded up to whole units; at least one."""
    share, whole = Fraction(1, 50), extension
    while whole <= overtime and share < Fraction(64, 100):
        share, whole = 2 * share, whole + extension
    return max(1, ceil(best * share))


def undercuts() -> list[dict[str, int]]:
    """Least undercuts at the edges of every level of overtime, then for arbitrary numbers."""
    rows = [
        (best, k * extension + off, extension)
        for best in BESTS
        for extension in EXTENSIONS
        for k in range(8)
        for off in (-1, 0)
        if k * extension + off >= 0
    ]
    for case in range(64):
        digest = int.from_bytes(sha256(f"bids {case}".encode()).digest(), "big")
        extension = 1 + (digest >> 64) % 2**32
        rows.append(((digest >> 128) >> (digest % 128), (digest >> 96) % (9 * extension), extension))
    return [
        {
            "best": best,
            "overtime": overtime,
            "extension": extension,
            "undercut": undercut(best, overtime, extension),
        }
        for best, overtime, extension in rows
    ]


def biddings() -> list[dict[str, int]]:
    """For each budget, the number of bids if the first bid equals the budget, and each later bid is as high
    and as late as allowed.
    """
    rows = []
    for budget in BUDGETS:
        best, bids = budget, 1
        while best - undercut(best, bids, 1) >= 0:
            best -= undercut(best, bids, 1)
            bids += 1
        rows.append({"budget": budget, "bids": bids})
    return rows


def main() -> None:
    """Write the file. Numbers are decimal strings, because JSON numbers are exact only up to 2^53."""
    sections = {"undercuts": undercuts(), "biddings": biddings()}
    table = {
        section: {name: [str(row[name]) for row in rows] for name in rows[0]}
        for section, rows in sections.items()
    }
    FILE.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
