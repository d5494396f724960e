"""The state holds a table of the last steps' metrics at every point of the training."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import torch
from torch import Tensor, nn

from protocol.capture import CapturedStep, CaptureError, capture
from protocol.program.execute import Interpreter

DATA = {"x": torch.arange(12.0).reshape(6, 2), "y": torch.arange(6.0)}


def objective(model: nn.Module, batch: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
    """The mean squared error, and the mean absolute error as a metric."""
    off = model(batch["x"]).squeeze(1) - batch["y"]
    return (off * off).mean(), {"off": off.abs().mean()}


def captured(history: int) -> CapturedStep:
    """A captured linear model; its clipping adds the gradient norm as a metric."""
    torch.manual_seed(0)
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    return capture(
        model,
        objective,
        optimizer,
        DATA,
        batch_size=2,
        steps=9,
        clip_norm=1.0,
        history=history,
        preflight=False,
    )


@pytest.mark.parametrize("history", [1, 4, 9, 20])
def test_the_table_has_every_one_of_the_last_steps(history: int) -> None:
    step = captured(history)
    state = step.initial_state(3)
    assert step.step_program.history(state) == {"step": [], "loss": [], "off": [], "grad_norm": []}
    seen: list[dict[str, float]] = []
    for number in range(1, 10):
        state = step.step(state)
        seen.append(
            {"step": number} | {name: float(state[f"metric.{name}"]) for name in ("loss", "off", "grad_norm")}
        )
        table = step.step_program.history(state)
        rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
        assert rows == seen[-history:]


def test_a_history_has_the_bits_of_its_primitives() -> None:
    step = captured(3)
    state = step.initial_state(3)
    for _ in range(5):
        outputs = Interpreter().run(step.step_program.program, (*step.step_program.order(state), *step.fixed))
        state = step.step(state)
        assert all(map(torch.equal, outputs, step.step_program.order(state)))


def test_a_resumed_task_begins_a_history_of_its_own() -> None:
    first = captured(4)
    state = first.step(first.initial_state(3))
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    options = {"batch_size": 2, "steps": 9, "clip_norm": 1.0, "preflight": False}
    again = capture(model, objective, optimizer, DATA, history=2, resume=state, **options)  # type: ignore[arg-type]
    begun = again.initial_state(4)
    assert again.step_program.history(begun)["step"] == []
    assert torch.equal(begun["weight"], state["weight"])


def test_without_a_history_there_is_no_table() -> None:
    step = captured(0)
    assert step.step_program.history(step.initial_state(0)) == {}


def test_a_buffer_of_this_name_is_no_history() -> None:
    class Counting(nn.Linear):
        history: Tensor

        def __init__(self) -> None:
            super().__init__(2, 1)
            self.register_buffer("history", torch.zeros(3))

        def forward(self, x: Tensor) -> Tensor:
            self.history += 1
            return super().forward(x)

    model = Counting()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    step = capture(model, objective, optimizer, DATA, batch_size=2, steps=3)
    state = step.step(step.initial_state(0))
    assert state["history"].tolist() == [1.0] * 3
    assert step.step_program.history(state) == {}


def test_a_history_of_no_whole_number_is_refused() -> None:
    with pytest.raises(CaptureError, match="history=-1"):
        captured(-1)
