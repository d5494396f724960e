"""Checks one entry: captures it, and compares a few steps with torch's steps in float32. If CUDA is
available, it also compares the CPU's bits with CUDA's.

Every model has to pass the same checks.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import process_time

import torch
from torch import Tensor

from protocol.capture import CapturedStep, capture
from protocol.program.execute import Interpreter
from tests.models.entry import Entry, Training
from tests.on_device import other_bits
from tests.unit.capture.steps import drawn, torch_step

STEPS = 3
"""Number of steps compared with torch."""
APART = 0.01
"""If no loss differs from torch's by more than this, no further check is needed. The difference is relative
to torch's loss or to `FLOOR`, whichever is larger.
"""
FLOOR = 0.1
DRAWS = ("aten.rand", "aten.bernoulli", "aten.native_dropout")
"""Prefixes of the names of operations that draw random numbers. If a step contains such an operation, only
the preflight can compare the step with torch.
"""
NUDGE = 2.0**-13
"""Relative rounding error of a contraction's operands; weights are nudged by at most this share."""
RUNS = 4
"""Number of torch's runs from nudged weights, for a model whose losses differ from torch's by more than `APART`."""
TIMES = 2.0
"""Factor of the limit for losses that differ from torch's by more than `APART`. The limit is this factor
times the largest difference between torch's runs from nudged weights and its run from the original weights.
"""


class Differs(AssertionError):
    """Raised if a captured step gives wrong results."""


@dataclass(frozen=True)
class Figures:
    """Measurements of a passing entry: number of operations, CPU seconds of the capture, and relative errors
    of the preflight.

    `apart` is the largest difference of `STEPS` losses from torch's; None if the step draws random numbers or
    has options other than `bits`. If `apart` exceeds `APART`, `own` is the largest difference of torch's
    losses when its weights are nudged by `NUDGE`; otherwise None.
    """

    operations: int
    capture: float
    loss_error: float
    gradient_error: float
    apart: float | None
    own: float | None = None


def check(entry: Entry) -> Figures:
    """Check an entry; raises `CaptureError` if it is refused, `Differs` if the captured step is wrong."""
    torch.manual_seed(0)
    training = entry.make()
    theirs = copy.deepcopy(training.model)
    began = process_time()
    step = captured(training)
    seconds = process_time() - began
    assert step.preflight is not None, "it is asked for"
    apart, own = follow(step, training, theirs)
    if torch.cuda.is_available() and (wrong := other_bits(step, torch.device("cuda"))):
        raise Differs(f"other bits on {torch.cuda.get_device_name()} than on the CPU {wrong}")
    return Figures(
        sum(one.count for one in step.coverage()),
        round(seconds, 2),
        step.preflight.loss_error,
        step.preflight.gradient_error,
        apart,
        own,
    )


def captured(training: Training) -> CapturedStep:
    """The training's captured step, with preflight."""
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


def follow(
    step: CapturedStep, training: Training, theirs: torch.nn.Module
) -> tuple[float | None, float | None]:
    """Require that kernels give the same state after the first step, bit for bit, as the bodies of the
    library functions. Then compare the losses of `STEPS` steps with torch's.

    Returns `apart` and `own` of `Figures`.
    """
    state = step.initial_state(5)
    bodies = step.step_program.step(state, step.fixed, Interpreter())
    batches, ours = [], []
    draws = any(one.operation.startswith(DRAWS) for one in step.coverage())
    for number in range(STEPS):
        batches.append(drawn(step, state, training.batch))
        state = step.step(state)
        if number == 0:
            _require_equal(state, bodies)
        loss = float(state["metric.loss"])
        if not math.isfinite(loss):
            raise Differs(f"the loss of step {number + 1} is {loss}")
        ours.append(loss)
    if draws or training.options.keys() - {"bits"}:
        return None, None
    right = _losses(training, copy.deepcopy(theirs), batches)
    apart = _distance(ours, right)
    if apart <= APART:
        return apart, None
    nudged = (_losses(training, _nudged(theirs, seed), batches) for seed in range(RUNS))
    own = max(_distance(losses, right) for losses in nudged)
    if apart > TIMES * own:
        raise Differs(
            f"the losses are {ours}, torch's {right}, which are {own:.2g} apart from nudged weights"
        )
    return apart, own


def _losses(
    training: Training, model: torch.nn.Module, batches: Sequence[Mapping[str, Tensor]]
) -> list[float]:
    """The losses of torch's training steps on these batches."""
    optimiser, found = training.optimiser(model), []
    scheduler = training.scheduler(optimiser) if training.scheduler else None
    for batch in batches:
        found.append(float(torch_step(model, training.objective, optimiser, batch)))
        if scheduler:
            scheduler.step()
    return found


def _distance(ours: Sequence[float], right: Sequence[float]) -> float:
    """The largest difference between corresponding losses of two runs. Each difference is divided by the size
    of the loss in `right`, or by `FLOOR` if that is larger.
    """
    return max(abs(x - y) / max(abs(y), FLOOR) for x, y in zip(ours, right, strict=True))


def _nudged(model: torch.nn.Module, seed: int) -> torch.nn.Module:
    """A copy with weights perturbed by the rounding error of a contraction's operands."""
    generator = torch.Generator().manual_seed(seed)
    model = copy.deepcopy(model)
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(1 + NUDGE * (2 * torch.rand(p.shape, generator=generator) - 1))
    return model


def _require_equal(ours: Mapping[str, Tensor], bodies: Mapping[str, Tensor]) -> None:
    for name, t in bodies.items():
        if t.numpy().tobytes() != ours[name].numpy().tobytes():
            raise Differs(f"{name} has other bits by kernels than by bodies")
