"""Playing many cases, some side by side, each in a process that plays one after the other."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Final

import structlog
import torch

from tests.campaign.cases import Case
from tests.campaign.disks import ROOT
from tests.campaign.faults import FAULTS
from tests.campaign.play import Outcome, play
from tests.campaign.results import Result, Results

FOLDER: Final = ROOT / "build" / "campaign"
FILE: Final = FOLDER / "results.jsonl"
PLAYED_BY_ONE: Final = 25
"""Cases after which a process is replaced by a new one."""


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
        outcome = play(FAULTS[case.fault], case.stage, case.who, case.place.scene, folder)
    if not outcome.wrong:
        log.unlink()
    return outcome
