"""The example GPT, tied and untied: losses and weights against torch. The key decides the dropout masks."""

from __future__ import annotations

import pytest
import torch

from examples import gpt
from protocol.capture import capture
from protocol.program.execute import Interpreter
from tests.unit.capture.steps import BATCH, drawn, torch_step

STEPS = 8
DATA = gpt.corpus(32, 1 << 13)


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
def test_steps_follow_torch(tied: bool) -> None:
    model = gpt.make_model(gpt.Shape(2, 2, 32, 32, dropout=0.0, tied=tied))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)
    step = capture(model, gpt.objective, optimizer, DATA, batch_size=BATCH, steps=STEPS)
    state = step.initial_state(4)
    for _ in range(STEPS):
        loss = torch_step(model, gpt.objective, optimizer, drawn(step, state))
        state = step.step(state)
        torch.testing.assert_close(state["metric.loss"], loss, rtol=1e-3, atol=1e-3)
    for name, p in model.named_parameters():
        # Adam's first steps are signs of gradients; the sign may differ where a gradient is nearly zero.
        far = (state[name] - p.detach()).abs() > 1e-4
        assert float(far.float().mean()) < 0.01, name


def test_with_dropout_kernels_have_the_bits_of_the_bodies() -> None:
    model = gpt.make_model(gpt.Shape(2, 2, 32, 32))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    step = capture(model, gpt.objective, optimizer, DATA, batch_size=BATCH, steps=STEPS)
    state = step.initial_state(4)
    fast, slow = step.step(state), step.step_program.step(state, step.fixed, Interpreter())
    for name, tensor in fast.items():
        assert tensor.flatten().tolist() == slow[name].flatten().tolist(), name


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_the_key_decides_the_masks(dropout: float) -> None:
    """All rows of the dataset are the same, so the seeds of two tasks decide only the masks."""
    model = gpt.make_model(gpt.Shape(2, 2, 32, 32, dropout=dropout))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    data = {name: rows[:1].expand_as(rows).clone() for name, rows in DATA.items()}
    step = capture(model, gpt.objective, optimizer, data, batch_size=BATCH, steps=STEPS)
    first, second = (step.step(step.initial_state(seed))["tokens.weight"] for seed in (4, 5))
    assert torch.equal(first, second) == (dropout == 0)
