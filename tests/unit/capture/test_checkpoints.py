"""Checkpointed parts draw the same random numbers when the backward pass recomputes them, as in torch."""

from __future__ import annotations

import pytest
import torch
import torch.utils.checkpoint
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from protocol.capture import CaptureError
from tests.unit.capture.steps import captured


class Drawing(nn.Module):
    """Draws random numbers in several ways and writes into the drawn tensors."""

    def __init__(self, again: bool) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.again = again
        self.first, self.out = nn.Linear(8, 8), nn.Linear(8, 3)
        self.drop = nn.Dropout(0.4)

    def block(self, x: Tensor) -> Tensor:
        x = self.drop(x.tanh())
        x = x * torch.rand_like(x).mul_(0.5).add_(0.75)
        return x + x.new_empty(x.shape).normal_().mul_(0.1) * x

    def part(self, x: Tensor) -> Tensor:
        return checkpoint(self.block, x, use_reentrant=False) if self.again else self.block(x)

    def forward(self, x: Tensor) -> Tensor:
        def both(y: Tensor) -> Tensor:
            return self.part(self.part(y).sigmoid())

        y = self.first(x)
        y = checkpoint(both, y, use_reentrant=False) if self.again else both(y)
        scores: Tensor = self.out(y)
        return scores


def test_a_checkpoint_draws_once_also_within_another() -> None:
    before = torch.utils.checkpoint._checkpoint_without_reentrant_generator
    steps = [captured(Drawing(again)) for again in (False, True)]
    assert torch.utils.checkpoint._checkpoint_without_reentrant_generator is before
    states = [step.initial_state(7) for step in steps]
    for _ in range(2):
        states = [step.step(state) for step, state in zip(steps, states)]
    assert {name: t.tolist() for name, t in states[0].items()} == {
        name: t.tolist() for name, t in states[1].items()
    }


class Frozen(nn.Module):
    """A frozen first layer, a checkpointed layer, and a last one."""

    def __init__(self, *, trained: bool) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.trained = trained
        self.first, self.middle, self.last = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 3)
        self.first.requires_grad_(False)
        self.middle.requires_grad_(trained)

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        if self.trained:
            y.requires_grad_()  # as enable_input_require_grads of transformers does
        scores: Tensor = self.last(checkpoint(self.middle, y, use_reentrant=True))
        return scores


def test_a_reentrant_checkpoint_that_needs_gradients_is_refused() -> None:
    before = torch.utils.checkpoint.CheckpointFunction.forward
    with pytest.raises(CaptureError, match="reentrant checkpoint") as caught:
        captured(Frozen(trained=True))
    (problem,) = caught.value.problems
    assert "use_reentrant=True" in problem.source
    assert "pass use_reentrant=False" in problem.remedy
    assert torch.utils.checkpoint.CheckpointFunction.forward is before


@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad=True")
def test_a_reentrant_checkpoint_of_frozen_layers_is_captured() -> None:
    assert captured(Frozen(trained=False)).preflight is not None
