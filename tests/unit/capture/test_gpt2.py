"""Hugging Face's GPT-2, unmodified, with its own configuration class and loss, compared to torch."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import torch
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel

from protocol.capture import capture
from protocol.program.execute import Interpreter
from tests.unit.capture.steps import BATCH, drawn, torch_step

VOCABULARY, LENGTH = 96, 24
STEPS = 20
TOKENS = (7 * torch.arange(50)[:, None] + torch.arange(LENGTH)) % VOCABULARY
"""Sequences that count upwards: every token follows from the one before it."""


def make_model(attention: str, dropout: float = 0.0, layers: int = 2, width: int = 32) -> GPT2LMHeadModel:
    """A model in training mode, with the same random weights every time."""
    config = GPT2Config(
        vocab_size=VOCABULARY,
        n_positions=LENGTH,
        n_embd=width,
        n_layer=layers,
        n_head=4,
        resid_pdrop=dropout,
        embd_pdrop=dropout,
        attn_pdrop=dropout,
        bos_token_id=0,
        eos_token_id=0,
    )
    torch.manual_seed(7)
    model: GPT2LMHeadModel = GPT2LMHeadModel(config).train()
    model.set_attn_implementation(attention)
    return model


def objective(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    """The model's own loss; the labels leave out the first three tokens of every example."""
    labels = torch.where(torch.arange(LENGTH) < 3, -100, batch["tokens"])
    loss: Tensor = model(input_ids=batch["tokens"], labels=labels).loss
    return loss


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_losses_follow_plain_float32(attention: str) -> None:
    model = make_model(attention)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.1)
    step = capture(model, objective, optimizer, {"tokens": TOKENS}, batch_size=BATCH, steps=STEPS)
    state = step.initial_state(3)
    for _ in range(8):
        loss = torch_step(model, objective, optimizer, drawn(step, state))
        state = step.step(state)
        torch.testing.assert_close(state["metric.loss"], loss, rtol=1e-3, atol=1e-3)
    assert float(state["metric.loss"]) < 4.3  # log(96) = 4.56 at first


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_with_dropout_it_trains_and_kernels_have_the_bits_of_the_bodies(attention: str) -> None:
    model = make_model(attention, dropout=0.1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    step = capture(
        model, objective, optimizer, {"tokens": TOKENS}, batch_size=BATCH, steps=STEPS, clip_norm=1.0
    )
    assert sum(hint.name == "keep_mask" for hint in step.hints.values()) == 1 + 2 * 3
    state = step.initial_state(0)
    fast, slow = step.step(state), step.step_program.step(state, step.fixed, Interpreter())
    assert all(
        torch.equal(fast[name].flatten().view(torch.uint8), slow[name].flatten().view(torch.uint8))
        for name in fast
    )
    losses = []
    for _ in range(STEPS):
        state = step.step(state)
        losses.append(float(state["metric.loss"]))
    assert sum(losses[-5:]) < sum(losses[:5]) - 0.5


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_a_padding_mask_from_the_batch(attention: str) -> None:
    lengths = 10 + torch.arange(50) % (LENGTH - 10)
    data = {"tokens": TOKENS, "mask": (torch.arange(LENGTH) < lengths[:, None]).long()}

    def padded(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        labels = torch.where(batch["mask"] == 1, batch["tokens"], -100)
        loss: Tensor = model(input_ids=batch["tokens"], attention_mask=batch["mask"], labels=labels).loss
        return loss

    model = make_model(attention)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    step = capture(model, padded, optimizer, data, batch_size=BATCH, steps=STEPS)
    state = step.initial_state(3)
    for _ in range(4):
        loss = torch_step(model, padded, optimizer, drawn(step, state))
        state = step.step(state)
        torch.testing.assert_close(state["metric.loss"], loss, rtol=1e-3, atol=1e-3)


def test_each_layer_adds_as_much_as_the_one_before() -> None:
    """Each further layer adds the same number of instructions to the program. The time of a capture is
    measured by the benchmarks.
    """
    sizes = []
    for layers in (1, 2, 3):
        model = make_model("sdpa", dropout=0.1, layers=layers)
        optimizer = torch.optim.AdamW(model.parameters())
        captured = capture(
            model, objective, optimizer, {"tokens": TOKENS}, batch_size=BATCH, steps=STEPS, preflight=False
        )
        sizes.append(len(captured.step_program.program.instructions))
    assert sizes[2] - sizes[1] == sizes[1] - sizes[0] > 0
