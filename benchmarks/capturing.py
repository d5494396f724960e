"""Capture: seconds from Hugging Face's own GPT-2, four layers at full width and vocabulary, to a checked program."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

import torch
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel

from benchmarks.measure import Row, seconds
from protocol.capture import CapturedStep, capture

LAYERS = 4
BATCH, LENGTH = 4, 256
ROUNDS = 3


def rows() -> list[Row]:
    """The median of a few captures; the model is made and its classes are imported before."""
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(n_layer=LAYERS)).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    tokens = {"tokens": torch.randint(model.config.vocab_size, (BATCH, LENGTH))}

    def objective(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        loss: Tensor = model(input_ids=batch["tokens"], labels=batch["tokens"]).loss
        return loss

    def once() -> CapturedStep:
        return capture(model, objective, optimizer, tokens, batch_size=BATCH, steps=10)

    found = [seconds(once) for _ in range(ROUNDS)]
    size = sum(p.numel() for p in model.parameters()) / 1e6
    what = f"capture of a GPT-2 with {LAYERS} layers, {size:.0f}M parameters"
    return [Row(what, f"{median(found):.1f} s", "10 s", f"{min(found):.1f}–{max(found):.1f}")]
