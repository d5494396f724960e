"""Measures commitments: tree hashing against raw SHA-256, a tree of a million leaves, and the cost of
checkpoints.

A checkpoint of the GPT has 130 MB. Its cost to training is the difference between steps with and without a
concurrent checkpoint, measured alternately. If the checkpoint takes longer than the steps, the wait for it
counts too.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import torch

from benchmarks.gpt import captured
from benchmarks.measure import Action, Row, in_use, interleaved, middle, seconds
from protocol.capture import CapturedStep
from protocol.commitments import BlobStore, Tree, tensor_root
from protocol.execution.replay import HonestExecutor
from protocol.node.database import Identity
from protocol.program.execute import Interpreter
from protocol.program.step import State
from solver.database import Database, Stage
from solver.pipeline import Pipeline
from solver.run_store import RunStore

TENSOR_BYTES = 32 << 20
LEAVES = 1_000_000
SIZE = "11M"
SEGMENT_STEPS = 20
"""Steps per segment in examples/gpt.toml. examples/digits.toml has 50."""
STEPS = 2
"""Steps per checkpoint: enough for one checkpoint to be written, and few enough that the machine's speed does
not drift.
"""
ROUNDS = 15
GOAL = 5.0
"""Limit on the cost of checkpoints, in per cent of the training time."""


def rows() -> list[Row]:
    """Rows for a tensor root against SHA-256, a million leaves, and the time and memory of checkpoints."""
    data = os.urandom(TENSOR_BYTES)
    ratios = interleaved(lambda: hashlib.sha256(data).digest(), lambda: tensor_root(data), rounds=15)
    share, spread = middle(ratios)
    leaves = os.urandom(32 * LEAVES)
    times = [seconds(lambda: Tree.from_rows(leaves, 32).root) for _ in range(5)]
    return [
        Row("tensor root / raw SHA-256, speed, one core", f"{share:.2f}", "at least 0.3", spread),
        Row("tree of 1,000,000 32-byte leaves", f"{median(times):.2f} s", "3 s"),
        *training_rows(),
        memory_row(),
    ]


def training_rows() -> list[Row]:
    """Rows with the share of training time that concurrent and in-line checkpoints take, by number of threads."""
    step, before, found = captured(SIZE), torch.get_num_threads(), []
    for threads in sorted({1, min(2, os.cpu_count() or 1)}):
        torch.set_num_threads(threads)
        try:
            found += _training_rows(step, threads)
        finally:
            torch.set_num_threads(before)
    return found


def _training_rows(step: CapturedStep, threads: int) -> list[Row]:
    state: State = step.initial_state(seed=1)

    def train() -> None:
        nonlocal state
        for _ in range(STEPS):
            state = step.step(state)

    with kept_runs(step) as run_store:
        pipeline = Pipeline(run_store)

        def beside() -> None:
            pipeline.put(state)
            train()
            pipeline.drain()

        def in_line() -> None:
            run_store.append(state)
            train()

        ways: dict[str, Action] = {"beside it": beside, "in line with it": in_line}
        alone: list[float] = []
        costs: dict[str, list[float]] = {name: [] for name in ways}
        for action in (train, *ways.values()):
            action()
        for _ in range(ROUNDS):
            alone.append(seconds(train))
            for name, way in ways.items():
                costs[name].append(seconds(way) - alone[-1])
        pipeline.close()
    one = median(alone) / STEPS
    return [_share_row(name, threads, one, cost) for name, cost in costs.items()]


def _share_row(name: str, threads: int, step_seconds: float, cost: list[float]) -> Row:
    shares = [100 * each / (SEGMENT_STEPS * step_seconds) for each in cost]
    _, spread = middle(shares)
    found = median(shares)
    least = max(1, -int(-median(cost) * 100 / GOAL / step_seconds // 1))
    what = (
        f"checkpoints kept {name}, share of training, GPT of 10.8M, segments of {SEGMENT_STEPS} steps of "
        f"{step_seconds:.2f} s, {threads} thread{'s' * (threads > 1)} ({GOAL:.0f} % from {least} steps on)"
    )
    return Row(what, f"{found:.1f} %", f"{GOAL:.0f} %" if name == "beside it" else "", spread)


def memory_row() -> Row:
    """A row that says how much more memory concurrent checkpoints take at the peak than in-line ones do, as a
    multiple of the state's size.
    """
    peaks = {}
    for how in ("beside", "in-line"):
        command = [sys.executable, "-m", "benchmarks.committing", how]
        peaks[how] = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    state = captured(SIZE).step_program.state_bytes
    more = (peaks["beside"] - peaks["in-line"]) / state
    what = f"checkpoints kept beside training, more memory at the peak, in states of {state / 1e6:.0f} MB"
    return Row(what, f"{more:.2f}", "1")


def peak(how: str) -> int:
    """Train four segments of two steps, with concurrent checkpoints if `how` is "beside" and in-line ones
    otherwise. Return the peak memory of this process in bytes.
    """
    step = captured(SIZE)
    state: State = step.initial_state(seed=1)
    with kept_runs(step) as run_store:
        pipeline = Pipeline(run_store)
        for _ in range(4):
            for _ in range(STEPS):
                state = step.step(state)
            if how == "beside":
                pipeline.put(state)
            else:
                run_store.append(state)
        pipeline.close()
    return in_use("VmHWM")


@contextmanager
def kept_runs(step: CapturedStep) -> Iterator[RunStore]:
    """A temporary run store on this machine's disk."""
    with tempfile.TemporaryDirectory() as name:
        database = Database(Path(name) / "solver.sqlite", Identity("", "", ""))
        database.put(1, Stage.TRAINING)
        executor = HonestExecutor(step.step_program, step.fixed, Interpreter())
        store = BlobStore(Path(name) / "blobs")
        materials = tuple(step.fixed), executor
        yield RunStore(1, step.step_program, lambda: materials, 1_000_000, SEGMENT_STEPS, database, store)
        database.close()


if __name__ == "__main__":
    print(peak(sys.argv[1]))
