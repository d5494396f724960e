"""Torch training alongside exact training: the same batches, random numbers, rates and clipping."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
import torch
from torch import Tensor, nn

from protocol.capture import CapturedStep, Phase, capture_phases
from protocol.capture.preflight.following import Following, apart, following
from tests.unit.capture.steps import BATCH, DATASET, captured, cross_entropy

STEPS = 5
NEAR = 2e-3


def network(*, dropout: bool = False) -> nn.Module:
    torch.manual_seed(3)
    layers = [nn.Linear(8, 16), nn.Tanh(), *([nn.Dropout(0.3)] if dropout else []), nn.Linear(16, 3)]
    return nn.Sequential(*layers)


def distances(step: CapturedStep, theirs: Following) -> list[float]:
    """The distance between the exact and the torch losses at each of `STEPS` steps."""
    state: Mapping[str, Tensor] = step.initial_state(11)
    found = []
    for _ in range(STEPS):
        losses = theirs.step(state)
        state = step.step(state)
        assert losses.keys() <= state.keys()
        assert losses, "there is a loss in each of these steps"
        found.append(apart({name: float(state[name]) for name in losses}, losses))
    return found


def test_a_loss_that_is_not_a_number_is_apart_from_any() -> None:
    right = {"first": 1.0, "second": 2.0}
    assert apart({"first": 1.5, "second": 2.0}, right) == 0.5
    assert math.isnan(apart({"first": 1.5, "second": math.nan}, right))
    assert math.isnan(apart({"first": math.nan, "second": 2.0}, right))


@pytest.mark.parametrize("dropout", [False, True], ids=["no draws", "dropout"])
@pytest.mark.parametrize("micro_batches", [1, 2])
def test_losses_stay_together_with_rates_clipping_and_draws(dropout: bool, micro_batches: int) -> None:
    model = network(dropout=dropout)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.7)
    step = captured(
        model,
        optimizer=optimizer,
        scheduler=scheduler,
        clip_norm=0.5,
        steps=STEPS,
        micro_batches=micro_batches,
    )
    theirs = following(step)
    assert theirs is not None
    assert max(distances(step, theirs)) < NEAR
    assert theirs.draws is dropout
    assert len(theirs.seconds) == (0 if dropout else STEPS)
    theirs.timed(step.initial_state(11))
    assert len(theirs.seconds) == (1 if dropout else STEPS + 1)


def test_another_training_is_far_from_it() -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    step = captured(model, optimizer=optimizer, steps=STEPS)
    theirs = following(step)
    assert theirs is not None
    optimizer.param_groups[0]["lr"] = 1.0
    first, *later = distances(step, theirs)
    assert first < NEAR, "no update was made yet"
    assert max(later) > 10 * NEAR


def test_a_phase_has_a_loss_where_it_acts() -> None:
    model = network()
    layers = [layer for layer in model.children() if isinstance(layer, nn.Linear)]
    body, head = (torch.optim.SGD(layer.parameters(), lr=0.2) for layer in layers)
    phases = [
        Phase("head", cross_entropy, head),
        Phase("body", cross_entropy, body, every=2, first=1),
    ]
    step = capture_phases(model, phases, DATASET, batch_size=BATCH, steps=STEPS)
    theirs = following(step)
    assert theirs is not None
    state: Mapping[str, Tensor] = step.initial_state(11)
    names = []
    for _ in range(4):
        losses = theirs.step(state)
        state = step.step(state)
        names.append(list(losses))
        assert apart({name: float(state[name]) for name in losses}, losses) < NEAR
    both = ["metric.head.loss", "metric.body.loss"]
    assert names == [both[:1], both, both[:1], both]


def test_a_resumed_task_is_not_followed() -> None:
    first = captured(network())
    state = first.step(first.initial_state(1))
    assert following(captured(network(), resume=state)) is None
