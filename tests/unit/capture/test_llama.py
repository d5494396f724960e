"""Hugging Face's Llama, unmodified, from a small configuration with random weights: captured and trained."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import torch
from torch import Tensor, nn

from protocol.capture import CapturedStep, capture
from protocol.program.execute import Interpreter
from tests.unit.capture.steps import drawn, torch_step

transformers = pytest.importorskip("transformers")

ROWS, LENGTH, VOCABULARY, BATCH, STEPS = 40, 24, 61, 6, 5


def make_llama() -> nn.Module:
    """Two layers, four heads over two key-value heads, RoPE, RMS norm, a gated MLP, an untied head."""
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=72,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        bos_token_id=1,
        eos_token_id=2,
    )
    model: nn.Module = transformers.LlamaForCausalLM(config)
    return model


def objective(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    """The model's own next-token loss."""
    loss: Tensor = model(input_ids=batch["tokens"], labels=batch["tokens"]).loss
    return loss


def captured_llama(model: nn.Module, optimizer: torch.optim.Optimizer) -> CapturedStep:
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(0, VOCABULARY, (ROWS, LENGTH), generator=generator)
    return capture(model, objective, optimizer, {"tokens": tokens}, batch_size=BATCH, steps=STEPS)


def test_llama_trains_as_in_torch_and_kernels_have_the_bits_of_bodies() -> None:
    model = make_llama()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    step = captured_llama(model, optimizer)
    state = step.initial_state(3)
    slow = step.step_program.step(state, step.fixed, Interpreter())
    fast = step.step(state)
    assert {name: t.tolist() for name, t in fast.items()} == {name: t.tolist() for name, t in slow.items()}
    for _ in range(STEPS):
        loss = torch_step(model, objective, optimizer, drawn(step, state))
        state = step.step(state)
        torch.testing.assert_close(state["metric.loss"], loss, rtol=2e-3, atol=2e-3)
    for name, p in model.named_parameters():
        torch.testing.assert_close(state[name], p.detach(), rtol=2e-2, atol=4e-3)
