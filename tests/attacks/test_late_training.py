"""A training that cannot end in time: said as soon as the rate shows it, and ended when the task is.

Issue F, row 10. At fd6f56d nothing compared the rate with the deadline, the training went on for the rest of its
segment after anybody had called `expire`, and the loss was logged at info level without a number.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from threading import Thread
from time import monotonic
from typing import Any

import pytest

from protocol.chain.views import NOBODY, TaskStatus
from tests.chain.solver_stage import Stage, stage

pytestmark = pytest.mark.chain

SLOW = """
import time
from protocol.execution.replay import HonestExecutor
step = HonestExecutor.step
def late(self, state, number):
    time.sleep(0.05)
    return step(self, state, number)
HonestExecutor.step = late
"""
"""A machine on which a step takes 50 ms."""
STEPS = 20_000
"""One segment of them takes 1,000 s there."""


class Running:
    """`solver run` as an operator starts it; what it logs, line by line."""

    def __init__(self, scene: Stage) -> None:
        code = f"{SLOW}\nfrom solver.cli import main\nmain()"
        command = [sys.executable, "-c", code, "run", "--once", "--log-json"]
        command += ["--rpc", scene.devnet.url, "--dev-account", "1", "--port", "0", "--stake", "600"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self._lines: Queue[dict[str, Any]] = Queue()
        self._reader = Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as lines:
            for line in lines:
                self._lines.put(json.loads(line) if line.startswith("{") else {"event": line})

    def close(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.wait()
        self._reader.join()

    def until(self, event: str, seconds: float = 60) -> dict[str, Any]:
        """The next line with this event."""
        deadline = monotonic() + seconds
        seen: list[str] = []
        while True:
            left = deadline - monotonic()
            assert left > 0, f"no line {event!r} after {seen}"
            line = self._lines.get(timeout=left)
            if line["event"] == event:
                return line
            seen.append(line["event"])


@contextmanager
def running(scene: Stage) -> Iterator[Running]:
    """Killed at the end."""
    allowed = json.dumps([scene.bundles.parent.as_uri()])
    scene.home.config.write_text(f"[solver]\nbundles = {allowed}\npoll = 0.05\n")
    made = Running(scene)
    try:
        yield made
    finally:
        made.close()


def test_it_is_warned_of_stops_with_the_task_and_says_what_was_lost(tmp_path: Path) -> None:
    with stage(tmp_path) as scene, running(scene) as solver:
        scene.devnet.connection.request("evm_setAutomine", True)
        task = scene.post(segments=2, segment_steps=STEPS // 2)
        scene.until(task, lambda view: view.bidder != NOBODY)
        scene.end_bidding(task)
        scene.until(task, lambda view: view.status is TaskStatus.TRAINING)

        warning = solver.until("training will not end in time")
        assert (warning["level"], warning["task"]) == ("warning", task)
        assert warning["seconds_needed"] > 900 > 600 >= warning["seconds_left"]
        assert (warning["penalty_tokens"], warning["price_tokens"]) == (5, 90)

        scene.devnet.skip(601)
        end = solver.until("task over")
        assert (end["level"], end["outcome"]) == ("error", "refunded")
        assert (end["penalty_tokens"], end["price_tokens"]) == (5, 90)
        assert solver.process.wait(30) == 0  # it does not train the 500 s of its segment to their end
        assert scene.submitter.market.task(task).status is TaskStatus.REFUNDED
