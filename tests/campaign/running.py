"""Plays many cases in parallel processes. Each process plays one case after another."""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from threading import Lock
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
"""Number of cases after which a process is replaced by a new one."""


def run(left: Sequence[Case], jobs: int, results: Results, commit: str) -> int:
    """Play the cases; returns how many went wrong. Each result is kept as soon as its case ends."""
    waiting, lock = deque(left), Lock()
    played = 0
    wrong = 0

    def kept(case: Case, outcome: Outcome) -> None:
        nonlocal played, wrong
        with lock:
            played, wrong = played + 1, wrong + bool(outcome.wrong)
            results.add(Result.of(case, outcome, commit))
            said = "; ".join(outcome.wrong) if outcome.wrong else "by a hand" if outcome.remedy else "fine"
            print(f"{played:4} {outcome.seconds:6.1f} s  {case}: {said}", flush=True)
            if outcome.wrong:
                print(outcome.report, flush=True)

    def play_some() -> None:
        """Play cases in one process after another. (In Python 3.11, a pool that can replace its processes
        hangs. So each process has a separate pool.)
        """
        while waiting:
            with ProcessPoolExecutor(1, get_context("spawn")) as process:
                for _ in range(PLAYED_BY_ONE):
                    try:
                        case = waiting.popleft()
                    except IndexError:
                        return
                    kept(case, process.submit(play_case, case).result())

    with ThreadPoolExecutor(jobs) as threads:
        for done in [threads.submit(play_some) for _ in range(jobs)]:
            done.result()
    return wrong


def play_case(case: Case) -> Outcome:
    """Play a case in its own folder. If something is wrong, the folder and the logs of all parties are kept."""
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
