"""One entry, from capture to a few steps beside float32. What is asked of it is asked of every model."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass
from time import process_time

import torch
from torch import Tensor

from protocol.capture import CapturedStep, capture
from protocol.program.execute import Interpreter
from tests.models.entry import Entry, Training
from tests.unit.capture.steps import drawn, torch_step

STEPS = 3
"""Steps that are followed."""
APART = 0.01
"""Largest distance of two losses, of the loss, or of a loss of `FLOOR` where it is smaller."""
FLOOR = 0.1
DRAWS = ("aten.rand", "aten.bernoulli", "aten.native_dropout")
"""Beginnings of operations that draw: torch draws others, so that only the preflight can compare these steps."""


class Differs(AssertionError):
    """A captured step that is not what it has to be."""


@dataclass(frozen=True)
class Figures:
    """What a good entry came to: relative errors of the preflight's steps, processor seconds of the capture, and the
    largest distance of the losses of `STEPS` steps from torch's, None where the step draws random numbers.
    """

    operations: int
    capture: float
    loss_error: float
    gradient_error: float
    apart: float | None


def check(entry: Entry) -> Figures:
    """Raises `CaptureError` where it is refused, `Differs` where it is captured and wrong."""
    torch.manual_seed(0)
    training = entry.make()
    theirs = copy.deepcopy(training.model)
    began = process_time()
    step = captured(training)
    seconds = process_time() - began
    assert step.preflight is not None, "it is asked for"
    apart = follow(step, training, theirs)
    return Figures(
        sum(one.count for one in step.coverage()),
        round(seconds, 2),
        step.preflight.loss_error,
        step.preflight.gradient_error,
        apart,
    )


def captured(training: Training) -> CapturedStep:
    """The training's step, preflighted."""
    optimiser = training.optimiser(training.model)
    return capture(
        training.model,
        training.objective,
        optimiser,
        training.data,
        batch_size=training.batch,
        steps=STEPS + 1,
        scheduler=training.scheduler(optimiser) if training.scheduler else None,
        **training.options,
    )


def follow(step: CapturedStep, training: Training, theirs: torch.nn.Module) -> float | None:
    """The first step by kernels and by bodies, then some beside torch; the largest distance of losses."""
    state = step.initial_state(5)
    bodies = step.step_program.step(state, step.fixed, Interpreter())
    optimiser, distances = training.optimiser(theirs), []
    scheduler = training.scheduler(optimiser) if training.scheduler else None
    draws = any(one.operation.startswith(DRAWS) for one in step.coverage())
    for number in range(STEPS):
        batch = drawn(step, state, training.batch)
        state = step.step(state)
        if number == 0:
            _require_equal(state, bodies)
        loss = float(state["metric.loss"])
        if not math.isfinite(loss):
            raise Differs(f"the loss of step {number + 1} is {loss}")
        if draws or training.options.keys() - {"bits"}:
            continue
        right = float(torch_step(theirs, training.objective, optimiser, batch))
        if scheduler:
            scheduler.step()
        distances.append(abs(loss - right) / max(abs(right), FLOOR))
        if distances[-1] > APART:
            raise Differs(f"the loss of step {number + 1} is {loss:.6g}, torch's {right:.6g}")
    return max(distances, default=None)


def _require_equal(ours: Mapping[str, Tensor], bodies: Mapping[str, Tensor]) -> None:
    for name, t in bodies.items():
        if t.numpy().tobytes() != ours[name].numpy().tobytes():
            raise Differs(f"{name} has other bits by kernels than by bodies")
