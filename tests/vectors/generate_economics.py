"""Write economics.json: chances and stakes, which pytest replays. README.md has the format.

Run as `python -m tests.vectors.generate_economics`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from protocol.tasks.economics import (
    ONE,
    Audit,
    escape_chance,
    minimum_stake,
    missed_chance,
)

FILE = Path(__file__).with_name("economics.json")
AUDITS = (
    Audit(1, 1, 1, ONE),
    Audit(5, 2, 3, 7 * ONE // 10),
    Audit(8, 8, 1, ONE // 2),
    Audit(40, 10, 4, 7 * ONE // 10),
    Audit(1000, 4, 3, 7 * ONE // 10),
    Audit(97, 13, 17, 617283945061728390),
    Audit(2**20, 64, 32, ONE // 3),
)
"""Audits to compute chances for. In the last two, any other order of roundings changes the result."""


def table(rows: list[dict[str, int]]) -> dict[str, list[str]]:
    """Turn the rows into columns by name. The values become decimal strings, because JSON numbers are exact
    only up to 2^53.
    """
    return {name: [str(row[name]) for row in rows] for name in rows[0]}


def chance_rows() -> list[dict[str, int]]:
    """Chances if one, about half or all of the segments are false."""
    return [
        audit._asdict()
        | {
            "false": false,
            "missed": missed_chance(audit.segments, false, audit.segments_per_verifier),
            "escape": escape_chance(audit, false),
        }
        for audit in AUDITS
        for false in sorted({1, (audit.segments + 1) // 2, audit.segments})
    ]


def stake_rows() -> list[dict[str, int]]:
    """Least stakes for a price and a gain of 10^18 each."""
    return [
        audit._asdict()
        | {
            "price": ONE,
            "gain": ONE,
            "stake": minimum_stake(audit, ONE, ONE),
        }
        for audit in AUDITS
    ]


def document() -> dict[str, Any]:
    """The whole file."""
    return {
        "chances": table(chance_rows()),
        "stakes": table(stake_rows()),
    }


def main() -> None:
    """Write the file."""
    FILE.write_text(json.dumps(document(), indent=0) + "\n")


if __name__ == "__main__":
    main()
