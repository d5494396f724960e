"""Measures a GPT's step in two worker processes relative to the step in one, and the cost of micro-batches.

The first comparison is about a step of four micro-batches. The step runs in two worker processes or in one.
Each process has one thread, as with `solver run --processes`. The bits are equal. The second comparison is
between a step of four micro-batches and a step of the whole batch, each in one process. These are two
programs with different bits.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from benchmarks.measure import Row, interleaved, ratio_row
from examples import gpt
from protocol.capture import CapturedStep
from protocol.execution.workers.pool import Workers
from protocol.program.step import State
from protocol.tasks.bundles import Bundle, write_bundle

TOKENS = 2048
SHAPES = {
    "1M": gpt.Shape(4, 4, 128, 256, dropout=0.0),
    "11M": gpt.Shape(6, 6, 384, 256, dropout=0.0),
}
UNITS = 4
STEPS = 4
"""Steps per timed call of the workers, as in a short segment."""
ROUNDS = {"1M": 15, "11M": 7}


def rows() -> list[Row]:
    """Two rows for each size: the time with two processes relative to one process, and the time of a step of
    micro-batches relative to a step of the whole batch.
    """
    return [row for name in SHAPES for row in (_processes(name), _units(name))]


def _captured(name: str, units: int) -> CapturedStep:
    shape = SHAPES[name]
    windows = gpt.corpus(shape.context)
    return gpt.build_of(gpt.make_model(shape), windows, TOKENS // shape.context, 1_000, units)


def _processes(name: str) -> Row:
    step = _captured(name, UNITS)
    with tempfile.TemporaryDirectory() as place, _one_thread():
        folder = Path(place)
        hash_ = write_bundle(Bundle.of("parallel", step, step.initial_state(1)), folder)
        program = step.step_program
        with Workers(folder, hash_, program, 2) as two, Workers(folder, hash_, program, 1) as one:
            ours, reference = (_Run(workers, step.initial_state(1)) for workers in (two, one))
            ratios = interleaved(ours.segment, reference.segment, ROUNDS[name])
    what = f"{STEPS} steps of {UNITS} micro-batches, 2 processes / 1, one thread each, GPT of {name}, {TOKENS:,} tokens"
    return ratio_row(what, ratios)


def _units(name: str) -> Row:
    ours, reference = (_Alone(_captured(name, units)) for units in (UNITS, 1))
    ratios = interleaved(ours.step, reference.step, 2 * ROUNDS[name])
    where = f"GPT of {name}, {TOKENS:,} tokens, {torch.get_num_threads()} threads"
    return ratio_row(f"step of {UNITS} micro-batches / step of one, {where}", ratios)


class _Run:
    def __init__(self, workers: Workers, state: State) -> None:
        self._workers, self._state = workers, state

    def segment(self) -> None:
        self._state = self._workers.run(self._state, 1, STEPS, lambda _number, _state: None)


class _Alone:
    def __init__(self, captured: CapturedStep) -> None:
        self._captured = captured
        self._state: State = captured.initial_state(1)

    def step(self) -> None:
        self._state = self._captured.step(self._state)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Make processes that are started in this context compute on one thread each."""
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        yield
    finally:
        del os.environ["OMP_NUM_THREADS"]
        if before is not None:
            os.environ["OMP_NUM_THREADS"] = before
