"""Prints the performance table with the date, commit and hardware. With `--record`, it also writes
docs/performance.md from the table.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from benchmarks import (
    capturing,
    chunks,
    commands,
    committing,
    digesting,
    gas,
    gpt,
    idle,
    memory,
    models,
    page,
    parallel,
    products,
    recurrent,
    repdl,
    resnet,
    serving,
    simulation,
    starting,
    tracing,
    training,
)
from benchmarks.cuda import lanes as cuda_lanes
from benchmarks.cuda import times as cuda
from benchmarks.environment import where
from benchmarks.lanes import speed as lanes
from benchmarks.measure import Row
from benchmarks.soak import starting as following
from benchmarks.trust import __main__ as trust
from protocol.node.process import keep_memory

GROUPS = {
    "capturing": capturing.rows,
    "committing": committing.rows,
    "digesting": digesting.rows,
    "training": training.rows,
    "gpt": gpt.rows,
    "resnet": resnet.rows,
    "recurrent": recurrent.rows,
    "models": models.rows,
    "lanes": lanes.rows,
    "memory": memory.rows,
    "starting": starting.rows,
    "following": following.rows,
    "idle": idle.rows,
    "status": following.status_rows,
    "parallel": parallel.rows,
    "cuda": lambda: [*cuda.rows(), *cuda_lanes.rows()],
    "products": products.rows,
    "repdl": repdl.rows,
    "tracing": tracing.rows,
    "commands": commands.rows,
    "gas": gas.rows,
    "serving": serving.rows,
    "chunks": chunks.rows,
    "simulation": simulation.rows,
    "trust": trust.rows,
}


def main() -> None:
    """Measure the chosen groups and print them."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--rows", nargs="+", choices=list(GROUPS), default=list(GROUPS))
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout instead of the table")
    parser.add_argument(
        "--record", action="store_true", help="also write docs/performance.md and its plot, after every group"
    )
    arguments = parser.parse_args()
    keep_memory()  # like every command that trains or simulates; it applies to the references too
    measured_at = where()
    found = {}
    for group in arguments.rows:
        found[group] = GROUPS[group]()
        if arguments.record and found[group]:
            page.record({group: {**measured_at, "rows": [asdict(row) for row in found[group]]}})
    every = [row for rows in found.values() for row in rows]
    if arguments.json:
        print(json.dumps({**measured_at, "rows": [asdict(row) for row in every]}, indent=2))
        return
    print(f"{measured_at['date']}, commit {measured_at['commit']}, {measured_at['hardware']}\n")
    print("| what | measured | goal | middle half |\n|---|---|---|---|")
    for row in every:
        print(line(row))


def line(row: Row) -> str:
    """One row as Markdown."""
    return f"| {row.what} | {row.value} | {row.goal} | {row.spread} |"


if __name__ == "__main__":
    main()
