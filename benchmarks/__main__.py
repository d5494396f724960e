"""Print the performance table with date, commit and hardware; `--record` writes docs/performance.md from it."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
from dataclasses import asdict
from pathlib import Path

from benchmarks import (
    capturing,
    commands,
    committing,
    cuda,
    gas,
    gpt,
    memory,
    page,
    parallel,
    products,
    repdl,
    resnet,
    simulation,
    starting,
    tracing,
    training,
)
from benchmarks.measure import Row

GROUPS = {
    "capturing": capturing.rows,
    "committing": committing.rows,
    "training": training.rows,
    "gpt": gpt.rows,
    "resnet": resnet.rows,
    "memory": memory.rows,
    "starting": starting.rows,
    "parallel": parallel.rows,
    "cuda": cuda.rows,
    "products": products.rows,
    "repdl": repdl.rows,
    "tracing": tracing.rows,
    "commands": commands.rows,
    "gas": gas.rows,
    "simulation": simulation.rows,
}


def main() -> None:
    """Measure the groups asked for and print them."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--rows", nargs="+", choices=list(GROUPS), default=list(GROUPS))
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout instead of the table")
    parser.add_argument("--record", action="store_true", help="also write docs/performance.md and its plot")
    arguments = parser.parse_args()
    where = {"date": datetime.date.today().isoformat(), "commit": commit(), "hardware": hardware()}
    found = {group: GROUPS[group]() for group in arguments.rows}
    if arguments.record:
        page.record(
            {name: {**where, "rows": [asdict(row) for row in rows]} for name, rows in found.items() if rows}
        )
    every = [row for rows in found.values() for row in rows]
    if arguments.json:
        print(json.dumps({**where, "rows": [asdict(row) for row in every]}, indent=2))
        return
    print(f"{where['date']}, commit {where['commit']}, {where['hardware']}\n")
    print("| what | measured | goal | middle half |\n|---|---|---|---|")
    for row in every:
        print(line(row))


def line(row: Row) -> str:
    """One row as Markdown."""
    return f"| {row.what} | {row.value} | {row.goal} | {row.spread} |"


def commit() -> str:
    """Short hash of the checkout, with a mark if it has changes."""
    run = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    )
    return run.stdout.strip() or "unknown"


def hardware() -> str:
    """Processor and number of cores."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [text.split(":")[1].strip() for text in info.read_text().splitlines() if "model name" in text]
        cpu = names[0] if names else cpu
    return f"{cpu}, {os.cpu_count()} cores"


if __name__ == "__main__":
    main()
