"""A schedule becomes a table only if it depends on the step alone and changes nothing but rates."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD
from torch.optim.lr_scheduler import LambdaLR, LRScheduler

from protocol.capture import CaptureError
from tests.unit.capture.steps import captured

STEPS, CHANGED = 12, 5
"""The length of a task, and the step before which each schedule does something else."""


class Body(nn.Module):
    """Two layers, of which the first may be frozen, with batch norm, dropout and a factor."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout(0.0))
        self.head = nn.Linear(8, 3)
        self.factor = 1.0

    def forward(self, x: Tensor) -> Tensor:
        """Three numbers per row."""
        out: Tensor = self.head(self.body(x))
        return out * self.factor


Act = Callable[[Body, SGD], object]


def factor(model: Body, _: SGD) -> None:
    model.factor = 0.5


def evaluating(model: Body, _: SGD) -> None:
    model.body.eval()


def dropping(model: Body, _: SGD) -> None:
    model.body[2].p = 0.5  # type: ignore[assignment]


def freezing(model: Body, _: SGD) -> None:
    model.body.requires_grad_(False)


def regrouping(model: Body, optimizer: SGD) -> None:
    optimizer.param_groups[0]["params"] = [*model.head.parameters()]


def one_more_group(_: Body, optimizer: SGD) -> None:
    optimizer.add_param_group({"params": [nn.Parameter(torch.zeros(1))]})


def without_momentum(_: Body, optimizer: SGD) -> None:
    optimizer.state.clear()


def shrinking(model: Body, _: SGD) -> None:
    with torch.no_grad():
        model.head.weight.mul_(0.5)


REFUSED: dict[Act, str] = {
    factor: "changes factor from 1.0 to 0.5 while it runs",
    evaluating: "changes body.training from True to False while it runs",
    dropping: "changes body.2.p from 0.0 to 0.5 while it runs",
    freezing: "changes body.0.weight.requires_grad from True to False while it runs",
    regrouping: "changes the parameters of the optimiser's groups",
    one_more_group: "changes the parameters of the optimiser's groups",
    without_momentum: "uses the optimiser's state",
    shrinking: "uses a tensor of the model",
    lambda model, _: float(model.head.weight.norm()): "uses a tensor of the model",
    lambda model, _: float(model.get_buffer("body.1.running_var").mean()): "uses a tensor of the model",
}


class Acting(LRScheduler):
    """A schedule with a constant rate. Before step `CHANGED`, it also calls `act`."""

    def __init__(self, model: Body, optimizer: SGD, act: Act) -> None:
        self._act = partial(act, model, optimizer)
        super().__init__(optimizer)

    def get_lr(self) -> list[float | Tensor]:
        """The rates that the groups have."""
        if self.last_epoch == CHANGED:
            self._act()
        return [group["lr"] for group in self.optimizer.param_groups]


@pytest.mark.parametrize(("act", "refusal"), REFUSED.items(), ids=range(len(REFUSED)))
def test_a_schedule_that_does_more_than_choose_rates_is_refused(act: Act, refusal: str) -> None:
    model = Body()
    optimizer = SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = Acting(model, optimizer, act)
    weights = {name: t.clone() for name, t in model.state_dict().items()}
    flags = [(name, module.training) for name, module in model.named_modules()]
    with pytest.raises(CaptureError, match=refusal):
        captured(model, optimizer=optimizer, steps=STEPS, scheduler=scheduler)
    assert all(torch.equal(t, weights[name]) for name, t in model.state_dict().items())
    assert [(name, module.training) for name, module in model.named_modules()] == flags
    assert all(p.requires_grad for p in model.parameters())
    assert [len(group["params"]) for group in optimizer.param_groups] == [len([*model.parameters()])]
    assert type(optimizer) is SGD
    captured(
        model, optimizer=optimizer, steps=CHANGED, scheduler=scheduler
    )  # the schedule did not come so far


def test_a_schedule_may_keep_what_the_step_does_not_use() -> None:
    model = Body()
    optimizer = SGD(model.parameters(), lr=0.1)
    rates = iter([1.0 / k for k in range(1, 2 * STEPS)])
    step = captured(
        model, optimizer=optimizer, steps=STEPS, scheduler=LambdaLR(optimizer, lambda _: next(rates))
    )
    expected = torch.tensor([0.1 / k for k in range(1, STEPS + 1)])
    torch.testing.assert_close(step.constants["learning_rate.0"], expected)
