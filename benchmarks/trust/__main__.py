"""Plays tasks until enough looks have occurred, and writes the measured price of trust to docs/trust.json.

It takes about five minutes on two cores. `python -m sim.economics_page` shows the result in
docs/economics.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from benchmarks import page
from benchmarks.environment import where
from benchmarks.measure import Row
from benchmarks.trust.life import BUDGET, Life, amounts
from benchmarks.trust.market import market
from benchmarks.trust.price import lacking, report
from benchmarks.trust.records import Chain, Record
from protocol.chain.parameters import TOKEN
from sim.trust_table import GOAL, MEASURED, SEGMENTS

TASKS: Final = 5
"""Number of tasks that are played with the terms' look chance."""
LOOKED: Final = 3
"""The least number of looks. If the first `TASKS` tasks have fewer, further tasks are played with the look
chance `OFTEN`, because with the terms' chance of 8 %, about thirteen tasks would be needed. A look's fee and
duration do not depend on the chance. If every task has looks, further tasks are played until one has none.
"""
OFTEN: Final = 5_000
MOST: Final = 20


def main() -> None:
    """Measure the price of trust, write it to docs/trust.json, record it in docs/performance.md, and print it."""
    found = {**where(), **measure()}
    MEASURED.write_text(json.dumps(found, indent=1) + "\n")
    kept = {name: found[name] for name in where()}
    page.record({"trust": {**kept, "rows": [asdict(row) for row in table(found)]}})
    print(json.dumps(found, indent=1))


def measure() -> dict[str, Any]:
    """Play and measure. Raises RuntimeError if `MOST` tasks have too few looks, or if all of them have looks."""
    records: list[Record] = []
    often = 0
    with market() as playing:
        life, chain = Life(playing), Chain(playing)
        first = chain.before()
        while wanted := missing(records):
            if len(records) == MOST:
                raise RuntimeError(f"{MOST} tasks were played, and {wanted} is still missing; run it again")
            more = len(records) >= TASKS and _looks(records) < LOOKED
            often += more
            lived = life.play(OFTEN if more else None)
            records.append(chain.record(lived, BUDGET * TOKEN))
            print(f"task {len(records)}: {records[-1].looks} looks", flush=True)
    return {**report(records, first), "of them looked at more often": often}


def missing(records: Sequence[Record]) -> str:
    """What must still be played, in words; "" if nothing is missing."""
    if len(records) < TASKS:
        return f"{TASKS} tasks"
    return f"a total of {LOOKED} looks" if _looks(records) < LOOKED else lacking(records)


def _looks(records: Sequence[Record]) -> int:
    """The number of looks in all tasks together."""
    return sum(record.looks for record in records)


def rows() -> list[Row]:
    """Measure the price of trust and return a row for each part, compared with the table in
    docs/economics.md.
    """
    return table(measure())


def table(found: Mapping[str, Any]) -> list[Row]:
    """The rows of a measurement."""
    task = f"a task of {BUDGET:,} tokens, {SEGMENTS} segments, look chance {amounts().look_chance / 100:g} %"
    played = f"{found['tasks']} tasks played by real nodes, {found['looks']} looks"
    made = []
    for name, (measured, counted) in found["parts"].items():
        what = f"price of trust in {task}, {name}; {played}"
        goal = f"{float(GOAL):.0%}" if name == "all" else ""
        made.append(
            Row(what, f"{measured:.2f} %; {measured / counted:.3f} of the table's {counted:.2f} %", goal)
        )
    return made


if __name__ == "__main__":
    main()
