"""The GPT task: a byte-level transformer on the source of Python's standard library, in plain torch.

This code runs only once, on the submitter's machine, when it is captured. Solvers and verifiers get a
program, tensors and terms; they never import this file.
"""

from __future__ import annotations

import math
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from protocol.capture import CapturedStep, capture, load_into

VOCABULARY = 256
"""Number of tokens. Each token is a byte."""
BATCH = 8
PEAK_RATE = 3e-3
WARM_UP = 10
"""Number of steps during which the learning rate rises. It then falls as a half cosine."""
WEIGHT_DECAY = 0.1
CLIP_NORM = 1.0
HELD_OUT = 64
"""The number of windows at the end of the corpus that are held out from training."""


@dataclass(frozen=True)
class Shape:
    """Sizes of a GPT. `width` is divided among `heads`; the hidden layer of a block is four times as wide."""

    layers: int
    heads: int
    width: int
    context: int
    dropout: float = 0.1
    tied: bool = True


TASK = Shape(layers=2, heads=2, width=32, context=32)
"""The model of `gpt.toml`: 34,688 parameters, small enough for many audits on one core."""


def build(steps: int, micro_batches: int = 1) -> CapturedStep:
    """The captured training step of `TASK`, with learning rates for `steps` steps."""
    training, _ = split(TASK.context)
    return build_of(make_model(TASK), training, BATCH, steps, micro_batches)


def build_of(
    model: nn.Module, windows: Mapping[str, Tensor], batch: int, steps: int, micro_batches: int = 1
) -> CapturedStep:
    """The captured training step of any GPT. Gradients are clipped, and the optimiser is AdamW, which decays
    only matrices.
    """
    optimizer = make_optimizer(model)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: warm_up_and_cosine(step, steps))
    return capture(
        model,
        objective,
        optimizer,
        windows,
        batch_size=batch,
        steps=steps,
        scheduler=scheduler,
        clip_norm=CLIP_NORM,
        micro_batches=micro_batches,
    )


class Block(nn.Module):
    """A pre-norm block: causal attention, then a hidden layer, each with a residual connection."""

    mask: Tensor

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads, self.rate = shape.heads, shape.dropout
        self.before_attention, self.before_hidden = nn.LayerNorm(shape.width), nn.LayerNorm(shape.width)
        self.queries_keys_values = nn.Linear(shape.width, 3 * shape.width)
        self.projection = nn.Linear(shape.width, shape.width)
        self.widen, self.narrow = (
            nn.Linear(shape.width, 4 * shape.width),
            nn.Linear(4 * shape.width, shape.width),
        )
        self.register_buffer("mask", torch.ones(shape.context, shape.context, dtype=torch.bool).tril())

    def forward(self, x: Tensor) -> Tensor:
        """f32 [B, T, D] to f32 [B, T, D]."""
        x = x + self._dropout(self.projection(self._attention(self.before_attention(x))))
        return x + self._dropout(self.narrow(F.gelu(self.widen(self.before_hidden(x)))))

    def _attention(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.queries_keys_values(x).split(width, dim=2)
        )
        scores = q @ k.transpose(-2, -1) * (1 / math.sqrt(width // self.heads))
        weights = scores.masked_fill(~self.mask[:length, :length], -math.inf).softmax(-1)
        mixed: Tensor = self._dropout(weights) @ v
        return mixed.transpose(1, 2).reshape(batch, length, width)

    def _dropout(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.rate, self.training)


class Gpt(nn.Module):
    """Token and position embeddings, blocks, layer norm, and a head, which may share the token table."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.rate = shape.dropout
        self.tokens, self.positions = (
            nn.Embedding(VOCABULARY, shape.width),
            nn.Embedding(shape.context, shape.width),
        )
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.before_head = nn.LayerNorm(shape.width)
        self.head = nn.Linear(shape.width, VOCABULARY, bias=False)
        self.register_buffer("place", torch.arange(shape.context))
        self.apply(self._initialise)
        if shape.tied:
            self.head.weight = self.tokens.weight

    place: Tensor

    def forward(self, tokens: Tensor) -> Tensor:
        """int64 [B, T] to logits f32 [B, T, 256]."""
        x = self.tokens(tokens) + self.positions(self.place[: tokens.shape[1]])
        x = F.dropout(x, self.rate, self.training)
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.head(self.before_head(x))
        return logits

    @staticmethod
    def _initialise(module: nn.Module) -> None:
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)


def make_model(shape: Shape, seed: int = 0) -> Gpt:
    """A model with the initial weights of a seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Gpt(shape)


def make_optimizer(model: nn.Module) -> torch.optim.AdamW:
    """AdamW; biases and the gains of layer norms have no weight decay."""
    matrices = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": WEIGHT_DECAY}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=PEAK_RATE, betas=(0.9, 0.95))


def warm_up_and_cosine(step: int, steps: int) -> float:
    """The number by which the peak learning rate is multiplied at a step; steps count from 0."""
    return min(1.0, (step + 1) / WARM_UP) * 0.5 * (1 + math.cos(math.pi * step / steps))


def objective(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    """Mean cross-entropy of the predicted next bytes in the windows."""
    window = batch["bytes"].long()
    logits = model(window[:, :-1])
    return F.cross_entropy(logits.reshape(-1, VOCABULARY), window[:, 1:].reshape(-1))


def corpus(context: int, limit: int = 1 << 20) -> dict[str, Tensor]:
    """The first `limit` bytes of the standard library's source, cut into adjacent windows of `context` + 1
    bytes: u8 [N, context + 1].
    """
    data = bytearray()
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        data += path.read_bytes()
        if len(data) >= limit:
            break
    count = min(len(data), limit) // (context + 1)
    text = torch.frombuffer(data, dtype=torch.uint8)[: count * (context + 1)]
    return {"bytes": text.clone().view(count, context + 1)}


def split(context: int) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Training and held-out windows."""
    windows = corpus(context)["bytes"]
    return {"bytes": windows[:-HELD_OUT]}, {"bytes": windows[-HELD_OUT:]}


def held_out_loss(state: Mapping[str, Tensor]) -> float:
    """The mean cross-entropy of a trained state on the held-out windows, in nats per byte, computed without
    dropout.
    """
    model = make_model(TASK).eval()
    load_into(model, state)
    _, held_out = split(TASK.context)
    with torch.no_grad():
        return float(objective(model, held_out))
