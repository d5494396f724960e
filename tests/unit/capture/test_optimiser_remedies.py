"""Optimisers that wrap another one, draw noise or make tensors are refused, with what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import (
    SGD,
    Optimizer,
)

from protocol.capture import CaptureError
from tests.unit.capture.steps import captured
from tests.unit.capture.test_optimisers import Gains, compare, in_torch, squares
from tests.unit.capture.test_traced_optimisers import Own


class Lookahead(Optimizer):
    """Steps another optimiser, and moves the parameters towards slow ones every second step."""

    def __init__(self, fast: Optimizer) -> None:
        super().__init__(fast.param_groups, {})
        self.fast = fast

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        self.fast.step()
        for p in self.param_groups[0]["params"]:
            state = self.state[p]
            state["step"] = state.get("step", 0) + 1
            slow = state.setdefault("slow", p.detach().clone())
            if state["step"] % 2 == 0:
                slow.lerp_(p, 0.5)
                p.copy_(slow)


class Averaged(Lookahead):
    """Steps another optimiser, and moves the parameters towards slow ones in every step."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        self.fast.step()
        for p in self.param_groups[0]["params"]:
            slow = self.state[p].setdefault("slow", p.detach().clone())
            p.copy_(slow.lerp_(p, 0.5))


class CountedAhead(Lookahead):
    """Counts its steps in an attribute."""

    def __init__(self, fast: Optimizer) -> None:
        super().__init__(fast)
        self.steps = 0

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        self.fast.step()
        self.steps += 1


class InOne(Own):
    """What `Lookahead` does with `SGD`, in one step."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for p in self.param_groups[0]["params"]:
            state = self.state[p]
            state["step"] = state.setdefault("step", torch.tensor(0.0)) + 1
            slow = state.setdefault("slow", p.detach().clone())
            p.sub_(p.grad, alpha=0.01)
            now = state["step"] % 2 == 0
            slow.copy_(torch.where(now, slow.lerp(p, 0.5), slow))
            p.copy_(torch.where(now, slow, p))


@pytest.mark.parametrize("kind", [Lookahead, Averaged, CountedAhead])
def test_an_optimiser_that_wraps_another_is_told_to_be_one(kind: type[Lookahead]) -> None:
    model = Gains()
    optimizer = kind(SGD(model.parameters(), lr=0.01))
    with pytest.raises(CaptureError) as caught:
        captured(model, squares, optimizer)
    assert all(f"{kind.__name__} wraps another optimiser, SGD" in x.remedy for x in caught.value.problems)


def test_an_optimiser_that_looks_ahead_in_one_step_follows_torch() -> None:
    model = Gains()
    optimizer = InOne(model.parameters())
    step = captured(model, squares, optimizer)
    compare(model, in_torch(step, model, optimizer, 4))


class Noisy(Own):
    """Adds noise in each step."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for p in self.param_groups[0]["params"]:
            p.sub_(p.grad + self.noise(p), alpha=0.01)

    def noise(self, p: Tensor) -> Tensor:
        """The noise of a parameter."""
        return torch.randn_like(p)


class FromADistribution(Noisy):
    """Draws the noise from one of torch's distributions."""

    def noise(self, p: Tensor) -> Tensor:
        found: Tensor = torch.distributions.Normal(0.0, 0.1).sample(p.shape)
        return found


class Dropped(Noisy):
    """Drops gradients."""

    def noise(self, p: Tensor) -> Tensor:
        assert p.grad is not None
        return -p.grad * (torch.rand_like(p) < 0.5)


class Filled(Noisy):
    """Fills a tensor with noise."""

    def noise(self, p: Tensor) -> Tensor:
        return torch.empty_like(p).normal_(0.0, 0.1)


@pytest.mark.parametrize("kind", [Noisy, FromADistribution, Dropped, Filled])
def test_an_optimiser_that_draws_noise_is_told_to_draw_it_in_the_objective(kind: type[Noisy]) -> None:
    model = Gains()
    with pytest.raises(CaptureError, match=f"{kind.__name__} draws random numbers, by aten") as caught:
        captured(model, squares, kind(model.parameters()))
    (problem,) = caught.value.problems
    assert "test_optimiser_remedies.py" in problem.source
    assert "in the loss" in problem.remedy

    def noisy(model: nn.Module, batch: Any) -> Tensor:
        noise = [(p * torch.randn_like(p)).sum() for p in model.parameters()]
        return squares(model, batch) + 0.1 * torch.stack(noise).sum()

    captured(model, noisy, SGD(model.parameters(), lr=0.01))


class Made(Noisy):
    """Makes a tensor of a Python number."""

    def noise(self, p: Tensor) -> Tensor:
        return p * torch.tensor(0.1)


def test_an_optimiser_that_makes_a_tensor_of_a_number_is_refused() -> None:
    model = Gains()
    with pytest.raises(CaptureError, match="makes a tensor of Python numbers") as caught:
        captured(model, squares, Made(model.parameters()))
    (problem,) = caught.value.problems
    assert "return p * torch.tensor(0.1)" in problem.source
    assert "with the numbers themselves" in problem.remedy


class CountedMean(Own):
    """Keeps a mean that starts as the gradient, and a count that starts as the result of `begun`."""

    begun: Callable[[], Tensor] = staticmethod(lambda: torch.tensor(0.0))

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for p in self.param_groups[0]["params"]:
            state = self.state[p]
            if not state:
                state["mean"] = p.grad.clone()
                state["step"] = self.begun()
            state["step"] += 1
            state["mean"].lerp_(p.grad, 0.1)
            p.sub_(state["mean"] / state["step"], alpha=0.01)


class FromZeros(CountedMean):
    """Starts the count with zeros."""

    begun = staticmethod(lambda: torch.zeros(()))


def test_a_count_beside_a_mean_that_starts_as_the_gradient_starts_with_zeros() -> None:
    model = Gains()
    with pytest.raises(CaptureError, match="makes a tensor of Python numbers") as caught:
        captured(model, squares, CountedMean(model.parameters()))
    (problem,) = caught.value.problems
    assert "torch.tensor(0.0)" in problem.source
    assert "for a count, begin with torch.zeros(())" in problem.remedy
    optimizer = FromZeros(model.parameters())
    step = captured(model, squares, optimizer)
    compare(model, in_torch(step, model, optimizer, 4))
