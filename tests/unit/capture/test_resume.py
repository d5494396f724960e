"""If a task resumes from another task's final state, the two tasks together give the same result as a single
task with the steps of both. The tests that compare them use one row, so that all batches are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer, RMSprop

from protocol.capture import CapturedStep, CaptureError, Phase, capture_phases
from tests.unit.capture.steps import captured, cross_entropy

ROW = {"x": torch.linspace(-1, 1, 8)[None], "y": torch.tensor([1])}
"""One row, so that every batch is the same."""


def made(width: int = 6) -> nn.Module:
    torch.manual_seed(2)
    return nn.Sequential(nn.Linear(8, width), nn.LayerNorm(width), nn.Linear(width, 3))


KINDS: dict[str, Callable[[Iterable[Tensor]], Optimizer]] = {
    "AdamW": lambda p: AdamW(p, lr=0.01),
    "amsgrad": lambda p: Adam(p, lr=0.01, amsgrad=True),
    "momentum": lambda p: SGD(p, lr=0.01, momentum=0.9),
    "dampening": lambda p: SGD(p, lr=0.01, momentum=0.9, dampening=0.5),
    "RMSprop": lambda p: RMSprop(p, lr=0.01, momentum=0.9),
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_two_tasks_are_as_one(kind: Callable[[Iterable[Tensor]], Optimizer]) -> None:
    model = made()
    whole = captured(model, optimizer=kind(model.parameters()), dataset=ROW)
    state = whole.initial_state(1)
    for _ in range(2):
        state = whole.step(state)
    model = made()
    rest = captured(model, optimizer=kind(model.parameters()), dataset=ROW, resume=state)
    other = rest.initial_state(9)
    assert int(other["step"]) == 0
    for _ in range(2):
        state, other = whole.step(state), rest.step(other)
    own = [name for name in state if name not in ("step", "key")]
    assert all(torch.equal(state[name], other[name]) for name in own)


class Counted(nn.Module):
    """A model whose batch norm writes statistics and a counter."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(8)
        self.metric = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.metric(self.norm(x))
        return y


def test_written_buffers_go_on() -> None:
    first = captured(Counted())
    state = first.step(first.step(first.initial_state(1)))
    rest = captured(Counted(), resume=state)
    begun = rest.initial_state(2)
    assert torch.equal(begun["norm.running_var"], state["norm.running_var"])
    assert torch.equal(begun["metric.weight"], state["metric.weight"])
    assert int(rest.step(begun)["norm.num_batches_tracked"]) == 3


def test_the_state_of_another_task_is_refused() -> None:
    model = made()
    step = captured(model, optimizer=SGD(model.parameters(), lr=0.1), dataset=ROW)
    state = step.initial_state(1)
    model = made()
    with pytest.raises(CaptureError, match=r"as 0\.weight\.exp_avg, got nothing") as caught:
        captured(model, optimizer=AdamW(model.parameters()), dataset=ROW, resume=state)
    assert all("this kind of optimiser" in problem.remedy for problem in caught.value.problems)
    with pytest.raises(CaptureError, match=r"expected f32\[7, 8\] as 0\.weight, got f32\[6, 8\]"):
        captured(made(7), dataset=ROW, resume=state)


def later(first: int, steps: int, resume: dict[str, Tensor] | None = None) -> CapturedStep:
    """A step whose second phase acts from step `first` on. The first update of this phase is computed
    differently from its later updates.
    """
    model = made()
    phases = [
        Phase("head", cross_entropy, SGD(model.get_submodule("2").parameters(), lr=0.1)),
        Phase("body", cross_entropy, KINDS["dampening"](model.get_submodule("0").parameters()), first=first),
    ]
    return capture_phases(model, phases, ROW, batch_size=1, steps=steps, resume=resume)


def test_a_phase_that_has_not_acted_begins_after_the_resume() -> None:
    whole = later(first=4, steps=8)
    state = whole.initial_state(1)
    for _ in range(2):
        state = whole.step(state)
    rest = later(first=2, steps=6, resume=state)
    resumed = rest.initial_state(1)
    for _ in range(5):
        state, resumed = whole.step(state), rest.step(resumed)
        assert torch.equal(state["0.weight"], resumed["0.weight"])
