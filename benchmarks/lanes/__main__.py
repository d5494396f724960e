"""Runs the missing trainings, one per core; writes the numbers and the page."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from typing import Any

from benchmarks.environment import ROOT, where
from benchmarks.lanes import shaped
from benchmarks.lanes.page import page
from benchmarks.lanes.plan import MOST_CORE_HOURS, MOST_RUNS, Run, runs
from benchmarks.lanes.plots import losses_by_traffic
from benchmarks.lanes.training import Outcome, play

DOCS = ROOT / "docs"
MEASURED = DOCS / "lanes.json"


def main() -> None:
    """Measure as the options say; write numbers, figure and page."""
    parser = argparse.ArgumentParser(prog="benchmarks.lanes", description=__doc__)
    parser.add_argument("--page", action="store_true", help="only write the page from the measured numbers")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="runs at a time (all cores)")
    parser.add_argument("--size", help="only the runs of this size")
    parser.add_argument("--shaped", action="store_true", help="only rounds over shaped links: six minutes")
    arguments = parser.parse_args()
    kept: dict[str, Any] = json.loads(MEASURED.read_text()) if MEASURED.exists() else {"runs": []}
    if arguments.shaped:
        shaped.write()
    elif not arguments.page:
        measure(kept, arguments.jobs, arguments.size)
    write(kept)


def measure(kept: dict[str, Any], jobs: int, size: str | None) -> None:
    """Run the trainings that `kept` lacks, and write `kept` after each one, so that a stopped study can resume."""
    wanted = [run for run in missing(kept) if size in (None, run.size)]
    print(f"{len(kept['runs'])} runs played, {len(wanted)} to play", flush=True)
    # Torch's threads do not survive a fork.
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        for future in as_completed(futures := {pool.submit(play, run): run for run in wanted}):
            run, outcome = futures[future], future.result()
            kept["runs"].append({**asdict(run), **asdict(outcome), **where()})
            MEASURED.write_text(json.dumps(kept, indent=1) + "\n")
            print(f"{run.size}, {run.text()}, seed {run.seed}: {outcome.loss:.4f}", flush=True)


def missing(kept: dict[str, Any]) -> list[Run]:
    """The runs of the plan that are missing, but at most as many as the budget still allows. Empty if the
    budget's core-hours are used up.
    """
    hours = sum(row["seconds"] for row in kept["runs"]) / 3600
    known = {run for run, _ in outcomes(kept)}
    left = [run for run in runs() if run not in known]
    return left[: max(0, MOST_RUNS - len(known))] if hours < MOST_CORE_HOURS else []


def outcomes(kept: dict[str, Any]) -> Iterator[tuple[Run, Outcome]]:
    """The runs that have already been measured, with their outcomes."""
    for row in kept["runs"]:
        yield (
            Run(**{name: row[name] for name in Run.__dataclass_fields__ if name in row}),
            Outcome(**{name: row[name] for name in Outcome.__dataclass_fields__ if name in row}),
        )


def write(kept: dict[str, Any]) -> None:
    """Write the page and its figure."""
    found = dict(outcomes(kept))
    losses_by_traffic(found, DOCS / "figures" / "lanes.svg")
    measured = json.loads(shaped.MEASURED.read_text()) if shaped.MEASURED.exists() else None
    (DOCS / "lanes.md").write_text(page(found, missing(kept), kept["runs"], measured))


if __name__ == "__main__":
    main()
