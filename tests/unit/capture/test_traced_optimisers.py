"""Optimisers without kernels are traced: torch's, subclasses, and custom ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from types import MethodType
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import (
    ASGD,
    SGD,
    Adadelta,
    Adafactor,
    Adagrad,
    Adam,
    Adamax,
    Muon,
    NAdam,
    Optimizer,
    RAdam,
    RMSprop,
    Rprop,
)
from torch.optim.lr_scheduler import LambdaLR

from protocol.capture import capture
from tests.unit.capture.steps import BATCH, DATASET, captured
from tests.unit.capture.test_optimisers import Gains, compare, in_torch, squares


class Lion(Optimizer):
    """Lion as in its paper, with the step count as a Python number."""

    def __init__(
        self, params: Iterable[nn.Parameter], lr: float = 1e-3, betas: Any = (0.9, 0.99), decay: float = 0.1
    ):
        super().__init__(params, {"lr": lr, "betas": betas, "decay": decay})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["exp_avg"] = torch.zeros_like(p)
                    state["step"] = 0
                state["step"] += 1
                p.mul_(1 - group["lr"] * group["decay"])
                moved = state["exp_avg"] * beta1 + p.grad * (1 - beta1)
                p.add_(torch.sign(moved), alpha=-group["lr"])
                state["exp_avg"].mul_(beta2).add_(p.grad, alpha=1 - beta2)


class Corrected(Lion):
    """Divides by a correction that depends on the step count."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                state.setdefault("step", 0)
                state.setdefault("mean", torch.zeros_like(p))
                state["step"] += 1
                state["mean"].lerp_(p.grad, 0.1)
                p.sub_(state["mean"] / (1 - 0.9 ** state["step"]) * group["lr"])


class Beginning(Lion):
    """Has no state before its first step, and a mean of the gradients after it."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                state["step"] = state.get("step", 0) + 1
                state["mean"] = state.get("mean", p.grad) * 0.9 + p.grad * 0.1
                p.sub_(state["mean"], alpha=group["lr"] / math.sqrt(state["step"]))


KINDS: list[tuple[str, Callable[..., Optimizer]]] = [
    ("Adagrad", lambda p: Adagrad(p, lr=0.01, lr_decay=0.1, weight_decay=0.1)),
    ("RMSprop", lambda p: RMSprop(p, lr=0.01)),
    ("RMSprop centred", lambda p: RMSprop(p, lr=0.01, centered=True, momentum=0.9)),
    ("Adadelta", lambda p: Adadelta(p, lr=0.5)),
    ("Adamax", lambda p: Adamax(p, lr=0.01)),
    ("NAdam", lambda p: NAdam(p, lr=0.01)),
    ("RAdam", lambda p: RAdam(p, lr=0.01)),
    ("ASGD", lambda p: ASGD(p, lr=0.01)),
    ("Rprop", lambda p: Rprop(p, lr=0.01)),
    ("SGD dampening", lambda p: SGD(p, lr=0.01, momentum=0.9, dampening=0.5)),
    ("SGD maximize", lambda p: SGD(p, lr=0.01, momentum=0.9, maximize=True)),
    ("Adam maximize", lambda p: Adam(p, lr=0.01, maximize=True)),
    ("Adafactor", lambda p: Adafactor(p, lr=0.01)),
    ("Lion", lambda p: Lion(p, lr=0.01)),
    ("beginning", lambda p: Beginning(p, lr=0.01)),
    ("corrected", lambda p: Corrected(p, lr=0.01)),
]


@pytest.mark.parametrize("make", [make for _, make in KINDS], ids=[name for name, _ in KINDS])
def test_updates_follow_torch(make: Callable[..., Optimizer]) -> None:
    model = Gains()
    optimizer = make(model.parameters())
    step = captured(model, squares, optimizer)
    assert all(isinstance(p, nn.Parameter) and not p.grad for p in optimizer.state)
    assert all(isinstance(p, nn.Parameter) for group in optimizer.param_groups for p in group["params"])
    compare(model, in_torch(step, model, optimizer, 4))


@pytest.mark.parametrize("make", [dict(KINDS)["RMSprop"], dict(KINDS)["Lion"]], ids=["RMSprop", "Lion"])
def test_rates_of_a_scheduler_are_followed(make: Callable[..., Optimizer]) -> None:
    model = Gains()
    optimizer = make(model.parameters())
    scheduler = LambdaLR(optimizer, lambda k: 1 / (k + 1))
    step = capture(model, squares, optimizer, DATASET, batch_size=BATCH, steps=6, scheduler=scheduler)
    compare(model, in_torch(step, model, optimizer, 6, scheduler))


class Layers(nn.Module):
    """Two matrices, for optimisers that accept only matrices."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(4)
        self.first = nn.Parameter(torch.randn(8, 6, generator=generator))
        self.second = nn.Parameter(torch.randn(6, 3, generator=generator))

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(x @ self.first) @ self.second


@pytest.mark.parametrize("nesterov", [True, False])
def test_muon_is_followed_though_torch_computes_it_in_bfloat16(nesterov: bool) -> None:
    model = Layers()
    optimizer = Muon(model.parameters(), lr=0.01, nesterov=nesterov)
    step = captured(model, squares, optimizer)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    after = in_torch(step, model, optimizer, 4)
    for name, p in model.named_parameters():
        moved, error = (p.detach() - before[name]).norm(), (after[name] - p.detach()).norm()
        assert error < 0.1 * moved


def test_a_step_that_was_replaced_is_what_is_traced() -> None:
    model = Gains()
    optimizer = SGD(model.parameters(), lr=0.1)

    @torch.no_grad()
    def halved() -> None:
        for group in optimizer.param_groups:
            for p in group["params"]:
                p.sub_(p.grad * (0.5 * group["lr"]))

    optimizer.step = halved  # type: ignore[assignment, method-assign]
    step = captured(model, squares, optimizer)
    plain = Gains()
    compare(plain, in_torch(step, plain, SGD(plain.parameters(), lr=0.05), 4))


@pytest.mark.parametrize("of_closure", [False, True], ids=["its argument", "a closure"])
def test_a_step_that_was_replaced_before_a_scheduler_wrapped_it_is_what_is_traced(of_closure: bool) -> None:
    """The new step updates the parameters of its argument, or those of an optimiser in its closure. The
    scheduler records in the optimiser that the step was called. `capture` does not refuse this.
    """
    model = Gains()
    optimizer = SGD(model.parameters(), lr=0.1)

    @torch.no_grad()
    def halve(groups: list[dict[str, Any]]) -> None:
        for group in groups:
            for p in group["params"]:
                p.sub_(p.grad * (0.5 * group["lr"]))

    def halved(self: SGD) -> None:
        halve(self.param_groups)

    def halved_of_closure(_: SGD) -> None:
        halve(optimizer.param_groups)

    step = halved_of_closure if of_closure else halved
    optimizer.step = MethodType(step, optimizer)  # type: ignore[method-assign]
    update = captured(model, squares, optimizer, scheduler=LambdaLR(optimizer, lambda _: 1.0))
    plain = Gains()
    compare(plain, in_torch(update, plain, SGD(plain.parameters(), lr=0.05), 4))


class Own(Lion):
    """A custom optimiser with attributes; subclasses define its step."""

    def __init__(self, params: Iterable[nn.Parameter]) -> None:
        super().__init__(params, lr=0.01)
        self.mine = self.param_groups[0]["params"]
        self.log: list[object] = []
        self.count = 0


class AsAWhole(Own):
    """Assigns a parameter's whole state as one dict."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for p in self.param_groups[0]["params"]:
            if p not in self.state:
                self.state[p] = {"mean": torch.zeros_like(p)}
            self.state[p]["mean"].lerp_(p.grad, 0.1)
            p.sub_(self.state[p]["mean"], alpha=self.param_groups[0]["lr"] * getattr(p, "scale", 1.0))


class Copying(Own):
    """Writes into copies of its state in bfloat16 and float16."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for p in self.param_groups[0]["params"]:
            mean = self.state[p].setdefault("mean", torch.zeros_like(p))
            mean.lerp_(p.grad, 0.1)
            for copy in (mean.to(torch.bfloat16), mean.type(torch.bfloat16), mean.half(), mean.bfloat16()):
                copy.mul_(0.25)
                p.sub_(copy.float(), alpha=self.param_groups[0]["lr"])


class Trained(Own):
    """Skips frozen parameters."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for p in self.param_groups[0]["params"]:
            if p.requires_grad:
                p.sub_(p.grad, alpha=self.param_groups[0]["lr"])


class Scaled(Own):
    """Keeps a number computed from its first gradient."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for p in self.param_groups[0]["params"]:
            state = self.state[p]
            if not state:
                state["scale"] = 1 / p.grad.norm().item()
            p.add_(p.grad, alpha=-self.param_groups[0]["lr"] * state["scale"])


class Assigning(Own):
    """Assigns to `.data` of its parameters and of their state."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for p in self.param_groups[0]["params"]:
            mean = self.state[p].setdefault("mean", torch.zeros_like(p))
            mean.data = mean * 0.9 + p.grad * 0.1
            p.data = p.data - self.param_groups[0]["lr"] * mean


def test_a_conversion_to_bfloat16_is_a_copy() -> None:
    model = Gains()
    optimizer = Copying(model.parameters())
    step = captured(model, squares, optimizer)
    compare(model, in_torch(step, model, optimizer, 4), 1e-3)


@pytest.mark.parametrize("kind", [AsAWhole, Trained, Scaled, Assigning])
def test_peoples_own_follow_torch(kind: type[Own]) -> None:
    model = Gains()
    model.gain.scale = 3.0  # type: ignore[attr-defined]
    optimizer = kind(model.parameters())
    step = captured(model, squares, optimizer)
    assert not optimizer.state
    compare(model, in_torch(step, model, optimizer, 4))


class Normalising(Own):
    """Assigns an equal number of another type in each step. Holds tensors of unusual layouts."""

    def __init__(self, params: Iterable[nn.Parameter]) -> None:
        super().__init__(params)
        self.floor: float = 0
        self.held = [
            *(torch.ones(5)[::7], torch.eye(2).to_sparse(), torch.ones(2, device="meta")),
            torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
            torch.masked.masked_tensor(torch.ones(2), torch.tensor([True, False])),
        ]

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        self.floor = float(self.floor)
        self.param_groups[0].setdefault("clip", None)
        for p in self.param_groups[0]["params"]:
            p.sub_(p.grad, alpha=self.param_groups[0]["lr"])


class Storing(Own):
    """Keeps a mean of gradients. Each parameter's state is stored in another way."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for number, p in enumerate(self.param_groups[0]["params"]):
            if number % 2:
                self.state |= {p: self.state.get(p, {})}
                state = self.state[p]
            else:
                state = self.state.setdefault(p, {})
            if not state:
                state |= {"mean": torch.zeros_like(p)}
            p.sub_(state["mean"].lerp_(p.grad, 0.1), alpha=self.param_groups[0]["lr"])


class NotANumber(Own):
    """Holds NaN in an attribute and in a tensor, and changes neither."""

    def __init__(self, params: Iterable[nn.Parameter]) -> None:
        super().__init__(params)
        self.best = math.nan
        self.seen = torch.tensor([math.nan, 1.0])

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for p in self.param_groups[0]["params"]:
            p.sub_(p.grad, alpha=self.param_groups[0]["lr"])


@pytest.mark.filterwarnings("ignore:The PyTorch API of")
@pytest.mark.parametrize("kind", [NotANumber, Normalising, Storing])
def test_unusual_storing_is_captured(kind: type[Own]) -> None:
    model = Gains()
    optimizer = kind(model.parameters())
    step = captured(model, squares, optimizer)
    compare(model, in_torch(step, model, optimizer, 4))


class OneNumber(Gains):
    """Has a parameter without axes."""

    def __init__(self) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(1.5))

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = super().forward(x) * self.factor
        return found


def test_a_parameter_without_axes_is_a_key_of_the_state() -> None:
    model = OneNumber()
    optimizer = Beginning(model.parameters(), lr=0.01)
    step = captured(model, squares, optimizer)
    compare(model, in_torch(step, model, optimizer, 4))
