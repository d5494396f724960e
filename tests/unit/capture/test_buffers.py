"""Buffers that a step writes are state; in-place writes inside a step behave as in torch."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import torch
from torch import Tensor, nn

from protocol.capture import CaptureError
from tests.unit.capture.steps import DATASET, captured, cross_entropy, follow


class Following(nn.Module):
    """Writes three buffers in each step: a moving average of its input, a sliding window of past averages,
    and a counter. It only reads a fourth buffer, `mean`.
    """

    average: Tensor
    window: Tensor
    seen: Tensor
    mean: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(8, 3)
        self.register_buffer("average", torch.randn(8))
        self.register_buffer("window", torch.zeros(4, 8))
        self.register_buffer("seen", torch.tensor(5))
        self.register_buffer("mean", torch.randn(8))

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            self.average.mul_(0.9).add_(x.mean(0) * 0.1)
            self.window[1:3] = self.window[2:4] + 1
            self.window[3].copy_(self.average)
            self.seen += 1
        y: Tensor = self.out(x - self.mean - self.average)
        return y


class Rebound(Following):
    """Assigns a new tensor to a buffer instead of writing into it."""

    def forward(self, x: Tensor) -> Tensor:
        self.average = self.average * 0.5
        y: Tensor = self.out(x - self.average)
        return y


class Overwriting(nn.Module):
    """Writes into temporaries: into a whole tensor, into slices, at an index, and through a view."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        h = x * 2
        seen = h.view(-1)
        h.relu_()
        h[:, 1] = 0.5
        h[1:3, 2:4] += x[:2, :2]
        seen[:3].zero_()
        y: Tensor = self.out(seen.view(-1, 8) + torch.tensor([1.0, 2.0] * 4))
        y[:, :1] *= 0.5
        return y


@pytest.mark.parametrize("model", [Following, Rebound, Overwriting])
def test_writes_in_place_follow_torch(model: type[nn.Module]) -> None:
    torch.manual_seed(3)
    follow(model())


def test_written_buffers_are_state_and_others_are_constants() -> None:
    step = captured(Following())
    assert {"average", "window", "seen"} < set(step.step_program.state)
    assert list(step.constants) == ["mean", "learning_rate.0"]
    assert step.initial_state(1)["seen"].item() == 5
    assert step.initial_state(1)["seen"].dtype is torch.int32
    assert step.step(step.initial_state(1))["seen"].item() == 6


def test_literals_are_constants_of_the_task() -> None:
    step = captured(Overwriting())
    assert step.constants["literal.1"].tolist() == [1.0, 2.0] * 4


def test_a_buffer_cannot_change_its_shape() -> None:
    class Growing(Following):
        def forward(self, x: Tensor) -> Tensor:
            self.window = torch.cat([self.window, x])
            return super().forward(x)

    with pytest.raises(CaptureError, match="buffer window changes"):
        captured(Growing())


def test_capture_leaves_the_models_own_buffers_alone() -> None:
    model = Following()
    before = {name: t.clone() for name, t in model.state_dict().items()}
    captured(model)
    assert all(torch.equal(t, before[name]) for name, t in model.state_dict().items())
    assert all(type(t) in (Tensor, nn.Buffer, nn.Parameter) for t in [*model.buffers(), *model.parameters()])


def in_batch(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    batch["x"].add_(1)
    return cross_entropy(model, batch)


def in_parameter(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    with torch.no_grad():
        model.weight[0].mul_(0.5)  # type: ignore[index]
    return cross_entropy(model, batch)


def test_writes_into_batch_and_parameters_are_refused_together() -> None:
    def both(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        in_batch(model, batch)
        return in_parameter(model, batch)

    with pytest.raises(CaptureError) as caught:
        captured(nn.Linear(8, 3), both)
    what = {problem.what: problem for problem in caught.value.problems}
    assert set(what) == {"the step writes into parameter weight", "the step writes into batch tensor x"}
    assert "model.weight[0].mul_(0.5)" in what["the step writes into parameter weight"].source
    assert 'batch["x"].add_(1)' in what["the step writes into batch tensor x"].source


def test_a_frozen_parameter_cannot_be_written() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 3))
    model[0].requires_grad_(False)

    def objective(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        model[0].bias.zero_()  # type: ignore[index]
        return cross_entropy(model, batch)

    with pytest.raises(CaptureError, match=r"parameter 0\.bias"):
        captured(model, objective)


class Gaps(nn.Linear):
    """Doubles its input and overwrites every second column of the result, then applies the linear layer."""

    def forward(self, x: Tensor) -> Tensor:
        h = x * 2
        h[:, ::2] = x[:, 1::2]
        return super().forward(h)


def test_a_write_with_gaps_follows_torch() -> None:
    follow(Gaps(8, 3))


@pytest.mark.parametrize(
    ("buffer", "what"),
    [
        (torch.zeros(8, dtype=torch.int16), "table is int16"),
        (torch.zeros(8, dtype=torch.complex64), "table is complex64"),
        (torch.zeros(8, dtype=torch.float64), "table is float64"),
        (torch.full((8,), 2**31), "table exceeds 32 bits"),
    ],
    ids=["int16", "complex64", "float64", "too large"],
)
def test_buffers_that_no_type_holds_are_refused(buffer: Tensor, what: str) -> None:
    model = nn.Linear(8, 3)
    model.register_buffer("table", buffer)
    with pytest.raises(CaptureError) as caught:
        captured(model)
    assert [problem.what for problem in caught.value.problems] == [what]


def test_a_buffer_named_like_the_states_own_tensors_is_refused() -> None:
    class Named(Following):
        step: Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("step", torch.zeros(8))

        def forward(self, x: Tensor) -> Tensor:
            self.step.add_(1)
            return super().forward(x)

    with pytest.raises(CaptureError, match="step"):
        captured(Named(), dataset=DATASET)
