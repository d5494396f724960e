"""Plays a hundred tasks with fifty verifier accounts in five processes, and measures the nodes' memory,
files, threads, disk and requests to the chain. Exits with 1 if a criterion fails.

This takes about two hours on two cores. After Ctrl-C, the next call resumes with the same chain, home folders
and samples. The resumed soak has new processes, so their memory is judged separately. A soak that was killed
cannot be resumed: the next call starts over.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from benchmarks.environment import ROOT, where
from benchmarks.soak import report
from benchmarks.soak.criteria import criteria
from benchmarks.soak.plan import Plan
from benchmarks.soak.play import Play
from benchmarks.soak.samples import Samples, idle, sample
from benchmarks.soak.stage import CHAIN, Stage

FOLDER: Final = ROOT / "build" / "soak"
SHORT: Final = Plan(tasks=6, processes=2, accounts=5, cheat_every=4, window=2, idle_blocks=10)
PLAN: Final = "plan.json"


def main(arguments: Sequence[str] | None = None) -> int:
    """Play the remaining tasks, evaluate the criteria and print them; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument(
        "--folder", type=Path, default=FOLDER, help="for home folders, logs, samples and the chain"
    )
    parser.add_argument("--short", action="store_true", help="six tasks, ten accounts in two processes")
    parser.add_argument("--fresh", action="store_true", help="start over, whatever an earlier one has left")
    parser.add_argument("--record", action="store_true", help="write docs/soak.json, its figure and its rows")
    sizes = ("tasks", "processes", "accounts", "window")
    for name in sizes:
        parser.add_argument(f"--{name}", type=int, help=f"another number than {getattr(Plan(), name)}")
    options = parser.parse_args(arguments)
    given = {name: getattr(options, name) for name in sizes if getattr(options, name) is not None}
    plan = replace(SHORT if options.short else Plan(), **given)
    found = soak(options.folder, plan, fresh=options.fresh)
    if options.record:
        report.record(where(), plan, found)
    (options.folder / "report.json").write_text(json.dumps({**where(), **report.summary(plan, found)}) + "\n")
    report.plot(found.samples, options.folder / "soak.svg")
    judged = criteria(found)
    for one in judged:
        print(one.line)
    for row in report.rows(plan, found)[len(judged) :]:
        print(f"{row.what}: {row.value}")
    return 0 if all(one.passed for one in judged) else 1


def soak(folder: Path, plan: Plan, *, fresh: bool = False) -> Samples:
    """Play a soak, or the rest of a soak that earlier sessions began, to its end. Return the samples of all
    its sessions. With `fresh`, play the whole soak again.
    """
    _open(folder, plan, fresh)
    found = Samples.read(folder / "samples.jsonl")
    if len(found.samples) == plan.tasks and len(found.idle) > 1:
        return found
    session, began = found.session + 1, time.monotonic()
    with Stage(folder, plan) as stage:
        if not found.idle:
            found.write(idle(stage, session, 0))

        def done(task: int, status: str) -> None:
            number, seconds = len(found.samples) + 1, time.monotonic() - began
            found.write(sample(stage, session, seconds, task, status, number))
            print(f"{number} of {plan.tasks}: task {task} {status}, {seconds:.0f} s", flush=True)

        Play(stage, found.finished, done).run()
        found.write(idle(stage, session, plan.tasks))
    return found


def _open(folder: Path, plan: Plan, fresh: bool) -> None:
    """Prepare a folder in which this plan can begin or resume. An earlier soak that cannot be resumed, or any
    earlier soak with `fresh`, is deleted. Raises SystemExit if the folder has other contents.
    """
    kept = folder / PLAN
    # The chain's file exists only after an orderly shutdown, so it is as recent as the home folders.
    stopped = (folder / CHAIN).is_file()
    same = stopped and kept.is_file() and json.loads(kept.read_text()) == plan.data()
    if same and not fresh:
        return
    if folder.exists() and not kept.is_file() and any(folder.iterdir()):
        raise SystemExit(f"folder {folder}: expected a new or empty one, or an earlier soak's; name another")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    kept.write_text(json.dumps(plan.data()))


if __name__ == "__main__":
    sys.exit(main())
