"""On a CUDA device: compares the time of emitting a message, and of absorbing eight messages, with the time
of an inner step. All are replayed from CUDA graphs.
"""

from __future__ import annotations

from dataclasses import asdict
from functools import partial

import torch

from benchmarks.cuda.cells import Cells
from benchmarks.cuda.times import ROUNDS, SIZE, SIZES, TINY_GPT, done, recorded
from benchmarks.gpt import TOKENS, captured_of
from benchmarks.lanes.speed import DENSITIES, WIDTH
from benchmarks.measure import Action, Row, ratio_row, side_by_side
from protocol.lanes import lanes, seeds
from protocol.program.execute import Interpreter, Kernel
from protocol.program.library import kernels
from protocol.program.library.function import hints


def rows() -> list[Row]:
    """Rows with the ratios for each density; no rows without a device."""
    if not torch.cuda.is_available():
        return []
    return [row for density in DENSITIES for row in _rows(torch.device("cuda"), density)]


def cells(device: torch.device) -> Cells:
    """Yields one cell for each density. The cell measures this density's rows, as in `rows`. A dry run uses
    the smallest model.
    """
    for density in DENSITIES:
        yield f"density {density}", partial(_as_json, device, density)


def _as_json(device: torch.device, density: str) -> list[dict[str, object]]:
    return [asdict(row) for row in _rows(device, density)]


def _rows(device: torch.device, density: str) -> list[Row]:
    actions = {name: done(device, recorded(device, run)) for name, run in _round(device, density).items()}
    found = side_by_side(actions.pop("inner"), actions, ROUNDS)
    what = f"GPT of {SIZE if device.type == 'cuda' else 'no size'}, {TOKENS} tokens a step, {device}"
    return [
        ratio_row(f"{name} / inner step, {what}, density {density}", [1 / ratio for ratio in ratios])
        for name, ratios in found.items()
    ]


def _round(device: torch.device, density: str) -> dict[str, Action]:
    """The three programs of a round, each with inputs as in training; all tensors are on the device."""
    captured = captured_of(SIZES[SIZE] if device.type == "cuda" else TINY_GPT)
    job = lanes(captured, width=WIDTH, density=DENSITIES[density], inner_steps=1)
    found: dict[bytes, Kernel] = {}
    for step in (job.absorb, job.inner, job.emit):
        found |= kernels(step.program, hints(step.program))
    interpreter, fixed = Interpreter(found, device), [x.to(device) for x in captured.fixed]
    state = {name: x.to(device) for name, x in job.initial_state(seeds(1, WIDTH)[0], 0).items()}
    nothing = [x.to(device) for x in job.nothing()]
    begun = job.absorbed(state, [nothing] * WIDTH, interpreter)
    trained = job.inner.step(begun, fixed, interpreter)
    between = job.emit.step(trained, (), interpreter)
    inbox = [job.message(between)] * WIDTH
    return {
        "inner": lambda: job.inner.step(begun, fixed, interpreter),
        "emit": lambda: job.emit.step(trained, (), interpreter),
        f"absorb of {WIDTH} messages": lambda: job.absorbed(between, inbox, interpreter),
    }
