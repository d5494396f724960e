"""Trainable parameters that the loss does not reach stay unchanged, as in torch, and a note reports them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer
from transformers import Dinov2Config, Dinov2ForImageClassification

from protocol.capture import CapturedStep
from protocol.program.step import METRIC
from tests.unit.capture.steps import captured, cross_entropy, drawn

Make = Callable[[nn.Module], Optimizer]


class Spare(nn.Module):
    """Two layers that make the result, and unused or detached parameters before, between and after them."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(3)
        self.mask_token = nn.Parameter(torch.randn(1, 8, generator=generator))
        self.first = nn.Linear(8, 8)
        self.spare = nn.Linear(2, 2)
        self.offset = nn.Parameter(torch.randn(8, generator=generator))
        self.out = nn.Linear(8, 3)
        self.end = nn.Parameter(torch.ones(2))
        for layer in (self.first, self.spare, self.out):
            for p in layer.parameters():
                p.data = torch.randn(p.shape, generator=generator) / 3

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.tanh(self.first(x)) + self.offset.detach()
        result: Tensor = self.out(hidden)
        return result


UNTOUCHED = ("mask_token", "spare.weight", "spare.bias", "offset", "end")
REACHED = ("first.weight", "first.bias", "out.weight", "out.bias")
OPTIMISERS: dict[str, Make] = {
    "SGD": lambda m: SGD(m.parameters(), lr=0.1, weight_decay=0.3),
    "momentum": lambda m: SGD(m.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.3),
    "Adam": lambda m: Adam(m.parameters(), lr=0.01, weight_decay=0.3),
    "amsgrad": lambda m: Adam(m.parameters(), lr=0.01, amsgrad=True),
    "AdamW": lambda m: AdamW(m.parameters(), lr=0.01, weight_decay=0.3),
    "groups": lambda m: AdamW(
        [
            {"params": [m.get_parameter(name) for name in ("mask_token", "spare.weight", "end")], "lr": 0.5},
            {"params": [m.get_parameter(name) for name in (*REACHED, "spare.bias", "offset")], "lr": 0.01},
        ],
        weight_decay=0.3,
    ),
}


def beside_torch(step: CapturedStep, model: Spare, optimizer: Optimizer, clip: float | None) -> None:
    """Train the captured step and torch. Assert that parameters and norms agree, and that the untouched
    parameters have no optimiser state in either.
    """
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    state = step.initial_state(7)
    for _ in range(4):
        optimizer.zero_grad()
        cross_entropy(model, drawn(step, state)).backward()
        if clip is not None:
            norm = nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        state = step.step(state)
        if clip is not None:
            torch.testing.assert_close(state[f"{METRIC}grad_norm"], norm.detach(), rtol=2e-3, atol=0)
    for name, p in model.named_parameters():
        if name in UNTOUCHED:
            assert p.grad is None
            assert torch.equal(p, before[name])
            assert torch.equal(step.constants[name], before[name])
            assert name not in state
            assert not optimizer.state[p], "torch keeps nothing of it"
        else:
            assert not torch.equal(p, before[name])
            torch.testing.assert_close(state[name], p.detach(), rtol=5e-3, atol=5e-3)
    kept = {name for name in state if name.rpartition(".")[0] in before}
    assert {name.rpartition(".")[0] for name in kept} <= set(REACHED)


@pytest.mark.parametrize("clip", [None, 0.05], ids=["whole", "clipped"])
@pytest.mark.parametrize("make", OPTIMISERS.values(), ids=OPTIMISERS)
def test_they_are_left_as_torch_leaves_them(make: Make, clip: float | None) -> None:
    model = Spare()
    optimizer = make(model)
    step = captured(model, optimizer=optimizer, clip_norm=clip)
    (note,) = [note for note in step.notes if "does not reach" in note]
    assert all(name in note for name in UNTOUCHED)
    beside_torch(step, model, optimizer, clip)


def test_in_micro_batches_too() -> None:
    model = Spare()
    optimizer = AdamW(model.parameters(), lr=0.01, weight_decay=0.3)
    beside_torch(captured(model, optimizer=optimizer, micro_batches=3), model, optimizer, None)


def test_one_that_the_optimiser_does_not_hold_is_left_too() -> None:
    model = Spare()
    step = captured(model, optimizer=SGD([model.get_parameter(name) for name in REACHED], lr=0.1))
    assert set(UNTOUCHED) <= set(step.constants)


def test_a_step_that_reaches_all_has_no_note() -> None:
    assert captured(nn.Linear(8, 3)).notes == ()


def test_the_note_names_a_few_of_many() -> None:
    model = nn.ModuleList(nn.Linear(8, 3) for _ in range(20))
    step = captured(model, lambda m, batch: F.cross_entropy(m[0](batch["x"]), batch["y"]))  # type: ignore[index]
    assert step.notes == (
        "the loss does not reach 1.weight, 1.bias, 2.weight, 2.bias, 3.weight and 33 more: left unchanged, as "
        "torch leaves them",
    )


def test_a_mask_token_of_transformers() -> None:
    config = Dinov2Config(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, image_size=8, patch_size=4
    )
    model = Dinov2ForImageClassification(config)
    images = {
        "x": torch.randn(20, 3, 8, 8, generator=torch.Generator().manual_seed(1)),
        "y": torch.arange(20) % 2,
    }
    step = captured(model, lambda m, batch: F.cross_entropy(m(batch["x"]).logits, batch["y"]), dataset=images)
    assert "dinov2.embeddings.mask_token" in step.constants
    assert any("does not reach dinov2.embeddings.mask_token" in note for note in step.notes)
