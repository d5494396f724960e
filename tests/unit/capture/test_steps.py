"""Captured steps of small models match torch, for several objectives and the options of SGD."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from protocol.capture import Objective
from protocol.program.execute import Interpreter
from tests.unit.capture.steps import BATCH, DATASET, captured, cross_entropy, drawn, torch_step


class Tied(nn.Module):
    """One layer used twice, and a weight laid out [in, out]."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(8, 8, bias=False)
        self.out = nn.Parameter(torch.randn(8, 3))
        self.mean = nn.Buffer(torch.randn(8))

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.inner(F.relu(self.inner((x - self.mean) / 2)))) @ self.out


class Reused(nn.Module):
    """An in-place operation on a temporary, a transpose, a slice and a broadcast."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 5)
        self.gain = nn.Parameter(torch.ones(5))
        self.last = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.first(x).relu_() * self.gain.view(1, 5)
        return F.linear(hidden.t().contiguous().t()[:, 1:], self.last.weight, self.last.bias)


def regularised(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    return cross_entropy(model, batch) + sum((p * p).sum() for p in model.parameters()) * 0.01


def squares(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    z: Tensor = model(batch["x"])
    return ((z - 0.5) ** 2).mean()


def by_hand(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    """A loss written with exponentials, logarithms, comparisons, masks and means along an axis."""
    z: Tensor = model(batch["x"])
    likelihood = (z - z.exp().sum(1, keepdim=True).log()).mean(0).sum()
    return -likelihood + torch.where(z > 0.25, z.abs(), z * z).mean() + (z * z + 1).sqrt().mean().reciprocal()


MODELS: dict[str, Callable[[], nn.Module]] = {
    "mlp": lambda: nn.Sequential(nn.Linear(8, 20), nn.ReLU(), nn.Linear(20, 3)),
    "deep": lambda: nn.Sequential(
        nn.Linear(8, 5), nn.ReLU(inplace=True), nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3)
    ),
    "tied": Tied,
    "reused": Reused,
}


@pytest.mark.parametrize("objective", [cross_entropy, regularised, squares, by_hand])
@pytest.mark.parametrize("model", MODELS)
def test_step_follows_torch(model: str, objective: Objective) -> None:
    torch.manual_seed(3)
    theirs = MODELS[model]()
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01)
    step = captured(theirs, objective, optimizer)
    state = step.initial_state(11)
    slow = state
    for number in range(4):
        loss = torch_step(theirs, objective, optimizer, drawn(step, state))
        state = step.step(state)
        slow = step.step_program.step(slow, step.fixed, Interpreter())
        assert {name: t.tolist() for name, t in state.items()} == {
            name: t.tolist() for name, t in slow.items()
        }
        torch.testing.assert_close(state["metric.loss"], loss, rtol=2e-3, atol=2e-3)
        assert state["step"].item() == number + 1
    for name, p in theirs.named_parameters():
        torch.testing.assert_close(state[name], p.detach(), rtol=2e-2, atol=2e-3)


def test_parameter_groups_frozen_weights_and_plain_sgd() -> None:
    model = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 3))
    model[0].bias.requires_grad_(False)
    groups: list[dict[str, Any]] = [
        {"params": [model[0].weight], "lr": 0.5, "momentum": 0.9},
        {"params": model[2].parameters()},
    ]
    optimizer = torch.optim.SGD(groups, lr=0.1)
    step = captured(model, optimizer=optimizer)
    assert [name for name in step.step_program.state if "momentum" in name] == ["0.weight.momentum"]
    assert list(step.constants) == ["0.bias", "learning_rate.0", "learning_rate.1"]
    state = step.initial_state(1)
    batch = drawn(step, state)
    after = step.step(state)
    torch_step(model, cross_entropy, optimizer, batch)
    for name, p in model.named_parameters():
        if p.requires_grad:
            torch.testing.assert_close(after[name], p.detach(), rtol=1e-3, atol=1e-3)


def test_learning_rates_are_the_schedulers_and_end_with_the_table() -> None:
    model = nn.Linear(8, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    step = captured(model, optimizer=optimizer, scheduler=scheduler)
    torch.testing.assert_close(step.constants["learning_rate.0"], torch.tensor([0.1, 0.05, 0.025, 0.0125]))
    assert optimizer.param_groups[0]["lr"] == 0.1
    assert scheduler.last_epoch == 0
    state = step.initial_state(0)
    for _ in range(4):
        state = step.step(state)
    after = step.step(state)
    assert torch.equal(state["weight"], after["weight"])


def test_metrics_bytes_as_data_and_the_seed() -> None:
    pixels = torch.randint(0, 256, (50, 8), dtype=torch.uint8)

    def objective(model: nn.Module, batch: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        z = model(batch["x"].float() / 255)
        accuracy = (z.argmax(1) == batch["y"]).float().mean()
        first = z[:1].expand(6, 3) > z[:1]  # operands of different shapes
        same = torch.where(first.t(), 1.0, z[:1].t()).sum(1)
        metrics = {"accuracy": accuracy, "largest": z.abs().sum(), "same": same.view(3, 1).mean()}
        return F.cross_entropy(z, batch["y"]), metrics

    model = nn.Linear(8, 3)
    step = captured(model, objective, dataset={"x": pixels, "y": DATASET["y"]})
    state = step.initial_state(2**40 + 5)
    assert state["key"].tolist() == [5, 256]
    batch = drawn(step, state)
    after = step.step(state)
    z = model(batch["x"].float() / 255).detach()
    assert after["metric.accuracy"].item() == (z.argmax(1) == batch["y"]).float().mean().item()
    torch.testing.assert_close(after["metric.largest"], z.abs().sum(), rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(after["metric.same"], z[0].sum() * 2, rtol=1e-3, atol=1e-3)
    other = step.step(step.initial_state(6))
    assert not torch.equal(after["weight"], other["weight"])
    with pytest.raises(ValueError, match="64 bits"):
        step.initial_state(2**64)


def test_the_program_depends_on_the_code_and_not_on_the_weights() -> None:
    first, second = captured(MODELS["mlp"]()), captured(MODELS["mlp"]())
    assert first.root == second.root
    assert first.root != captured(MODELS["deep"]()).root
    assert first.cost().operations > 2 * BATCH * (8 * 20 + 20 * 3)
    covered = {(entry.operation, entry.became): entry.count for entry in first.coverage()}
    assert covered["aten.mm.default", "linear_grad_weight"] == 2
    assert covered["aten.mm.default", "linear_grad_input"] == 1
    assert covered["aten.threshold_backward.default", "relu_grad"] == 1
    assert set(first.hints) < {program.id for program in first.step_program.program.closure()}


@pytest.mark.parametrize("model", ["mlp", "tied"])
def test_every_product_is_one_call_of_the_library(model: str) -> None:
    program = captured(MODELS[model]()).step_program.program
    called = Counter(program.callee(number).name for number in program.calls())
    # mlp: two layers, one input gradient. tied: three products, two input gradients, one through x @ w.
    assert called["linear_grad_weight"] == {"mlp": 2, "tied": 3}[model]
    assert called["linear_grad_input"] + called["linear"] == {"mlp": 3, "tied": 4}[model]
