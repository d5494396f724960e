"""Times the capture of Hugging Face's GPT-2, from the model to a checked program, and the preflight of the
capture.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median
from time import process_time
from typing import Any

import torch
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel

from benchmarks.measure import Row, seconds
from protocol.capture import CapturedStep, capture

LAYERS = 4
DEEP: Mapping[str, Any] = {"n_layer": 12, "n_embd": 256, "n_head": 4, "vocab_size": 4_096}
BATCH, LENGTH = 4, 256
ROUNDS = 3


def rows() -> list[Row]:
    """Rows with medians of a few captures. The times exclude building the model and importing its classes."""
    wide, deep = GPT2Config(n_layer=LAYERS), GPT2Config(**DEEP)
    once, size = _capturing(wide)
    found = [seconds(lambda: once(False)) for _ in range(ROUNDS)]
    what = f"capture of a GPT-2 with {LAYERS} layers, {size:.0f}M parameters, without preflight"
    capturing = Row(what, f"{median(found):.1f} s", "10 s", f"{min(found):.1f}–{max(found):.1f}")
    once, size = _capturing(deep)
    once(True)  # warm-up: kernels are self-tested on first use in a process
    found = [_processor_seconds(once, True) - _processor_seconds(once, False) for _ in range(ROUNDS)]
    what = f"its preflight, for {deep.n_layer} layers and {size:.0f}M parameters: processor time"
    return [capturing, Row(what, f"{median(found):.1f} s", "10 s", f"{min(found):.1f}–{max(found):.1f}")]


def _capturing(config: GPT2Config) -> tuple[Callable[[bool], CapturedStep], float]:
    """Two results. The first is a function that captures a model, and runs a preflight if its argument is
    true. The second is the model's number of parameters in millions.
    """
    torch.manual_seed(0)
    model = GPT2LMHeadModel(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    tokens = {"tokens": torch.randint(model.config.vocab_size, (BATCH, LENGTH))}

    def objective(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        loss: Tensor = model(input_ids=batch["tokens"], labels=batch["tokens"]).loss
        return loss

    def once(preflight: bool) -> CapturedStep:
        return capture(model, objective, optimizer, tokens, batch_size=BATCH, steps=10, preflight=preflight)

    return once, sum(p.numel() for p in model.parameters()) / 1e6


def _processor_seconds(once: Callable[[bool], CapturedStep], preflight: bool) -> float:
    began = process_time()
    once(preflight)
    return process_time() - began
