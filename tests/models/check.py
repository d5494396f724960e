"""One entry, from capture to a few steps beside float32, on a CUDA device too where there is one.

What is asked of it is asked of every model.
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
"""Steps that are followed."""
APART = 0.01
"""Largest distance of two losses, of the loss, or of a loss of `FLOOR` where it is smaller."""
FLOOR = 0.1
DRAWS = ("aten.rand", "aten.bernoulli", "aten.native_dropout")
"""Beginnings of operations that draw: torch draws others, so that only the preflight can compare these steps."""
NUDGE = 2.0**-13
"""Relative: what the operands of a contraction lose."""
RUNS = 4
"""Runs of torch's from nudged weights, for a model whose losses are further apart than `APART`."""
TIMES = 2.0
"""How much further apart than those runs its losses may be."""


class Differs(AssertionError):
    """A captured step that is not what it has to be."""


@dataclass(frozen=True)
class Figures:
    """What a good entry came to: relative errors of the preflight's steps, processor seconds of the capture, and the
    largest distance of the losses of `STEPS` steps from torch's, None where the step draws random numbers. Where that
    is more than `APART`, torch's own losses are `own` apart from weights that differ by `NUDGE`.
    """

    operations: int
    capture: float
    loss_error: float
    gradient_error: float
    apart: float | None
    own: float | None = None


def check(entry: Entry) -> Figures:
    """Raises `CaptureError` where it is refused, `Differs` where it is captured and wrong."""
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


def follow(
    step: CapturedStep, training: Training, theirs: torch.nn.Module
) -> tuple[float | None, float | None]:
    """The first step by kernels and by bodies, then some beside torch; the largest distance of losses, and that of
    torch's own, as in `Figures`.
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
    """Of torch's steps."""
    optimiser, found = training.optimiser(model), []
    scheduler = training.scheduler(optimiser) if training.scheduler else None
    for batch in batches:
        found.append(float(torch_step(model, training.objective, optimiser, batch)))
        if scheduler:
            scheduler.step()
    return found


def _distance(ours: Sequence[float], right: Sequence[float]) -> float:
    """The largest, relative but for small losses."""
    return max(abs(x - y) / max(abs(y), FLOOR) for x, y in zip(ours, right, strict=True))


def _nudged(model: torch.nn.Module, seed: int) -> torch.nn.Module:
    """A copy whose weights are off by as much as the operands of a contraction."""
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
