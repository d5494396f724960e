"""Steps with four units, small enough for several processes to train in a test."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from examples import gpt
from protocol.capture import CapturedStep, capture
from protocol.program.step import State
from protocol.tasks.bundles import Bundle, write_bundle
from tests.unit.capture.steps import captured

UNITS = 4
SEED = 5


def mlp(micro_batches: int = UNITS) -> CapturedStep:
    """The captured step of a classifier, with momentum."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 200), nn.ReLU(), nn.Linear(200, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return captured(model, optimizer=optimizer, batch_size=32, steps=100, micro_batches=micro_batches)


def transformer(micro_batches: int = UNITS) -> CapturedStep:
    """The captured step of a GPT, with dropout and gradient clipping."""
    model = gpt.make_model(gpt.Shape(1, 2, 32, 16, dropout=0.1))
    optimizer = gpt.make_optimizer(model)
    data = gpt.corpus(16, 1 << 13)
    options = {"batch_size": 8, "steps": 100, "clip_norm": 1.0, "micro_batches": micro_batches}
    return capture(model, gpt.objective, optimizer, data, **options)  # type: ignore[arg-type]


BUILD = {"mlp": mlp, "gpt": transformer}


def written(step: CapturedStep, folder: Path) -> bytes:
    """Write the step's bundle to a folder, and return its hash."""
    return write_bundle(Bundle.of("task", step, step.initial_state(SEED)), folder)


def alone(step: CapturedStep, steps: int) -> State:
    """The state after training in one process."""
    state: State = step.initial_state(SEED)
    for _ in range(steps):
        state = step.step(state)
    return state
