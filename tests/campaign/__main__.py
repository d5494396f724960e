"""`python -m tests.campaign`: play all cases, two side by side; go on where it was stopped; write the table.

`make campaign` calls it. With words it plays only the cases whose names have all of them, and writes no table.
"""

from __future__ import annotations

import shutil
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Final

import structlog
import torch

from tests.campaign import page
from tests.campaign.cases import Case, cases, covering, impossible
from tests.campaign.disks import ROOT
from tests.campaign.faults import FAULTS
from tests.campaign.play import Outcome, play
from tests.campaign.results import Result, Results
from tests.resuming import clean_commit

FOLDER: Final = ROOT / "build" / "campaign"
FILE: Final = FOLDER / "results.jsonl"
PLAYED_BY_ONE: Final = 25
"""Cases after which a process is replaced by a new one."""


def main() -> int:
    """0 where every case ended as it must."""
    options = _options()
    if options.impossible:
        for case, why in impossible():
            print(f"{case}: {why}")
        return 0
    commit = clean_commit(ROOT)
    FOLDER.mkdir(parents=True, exist_ok=True)
    results = Results(FILE, commit, options.any_commit)
    chosen = covering() if options.covering else cases()
    left = [
        case for case in results.left() if case in chosen and all(word in str(case) for word in options.words)
    ]
    if options.list:
        for case in left:
            print(case)
        return 0
    print(f"{len(left)} of {len(cases())} cases are left", flush=True)
    wrong = run(left, options.jobs, results, commit)
    if not (options.words or options.covering):
        page.record(results.found.values())
        print(f"the table is in {page.PAGE}")
    return 1 if wrong else 0


def run(left: Sequence[Case], jobs: int, results: Results, commit: str) -> int:
    """Play them; how many went wrong. Each is kept as it comes."""
    wrong = 0
    with ProcessPoolExecutor(jobs, get_context("spawn"), max_tasks_per_child=PLAYED_BY_ONE) as pool:
        playing = {pool.submit(play_case, case): case for case in left}
        for number, done in enumerate(as_completed(playing), start=1):
            case, outcome = playing[done], done.result()
            results.add(Result.of(case, outcome, commit))
            wrong += bool(outcome.wrong)
            said = "; ".join(outcome.wrong) if outcome.wrong else "by a hand" if outcome.remedy else "fine"
            print(f"{number:4} {outcome.seconds:6.1f} s  {case}: {said}", flush=True)
            if outcome.wrong:
                print(outcome.report, flush=True)
    return wrong


def play_case(case: Case) -> Outcome:
    """Play one in a folder of its own, which stays where something is wrong: with the logs of all parties."""
    folder = FOLDER / case.slug
    shutil.rmtree(folder, ignore_errors=True)
    log = FOLDER / f"{case.slug}.log"
    with log.open("w") as beside:
        structlog.configure(logger_factory=structlog.PrintLoggerFactory(beside))
        torch.set_num_threads(1)
        outcome = play(FAULTS[case.fault](), case.stage, case.who, case.place.scene, folder)
    if not outcome.wrong:
        log.unlink()
    return outcome


def _options() -> Namespace:
    parser = ArgumentParser(prog="python -m tests.campaign", description=__doc__)
    parser.add_argument("words", nargs="*", help="of the cases to be played")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--any-commit", action="store_true", help="count what was played on other commits")
    parser.add_argument("--covering", action="store_true", help="only those of the heavy tests; no table")
    parser.add_argument("--list", action="store_true", help="say which cases are left")
    parser.add_argument("--impossible", action="store_true", help="say which cases cannot be, and why")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
