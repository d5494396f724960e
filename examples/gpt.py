"""The GPT task: a byte-level transformer on the Python standard library's own source, in plain torch.

Everything here runs on the submitter's machine only, once, to be captured. Solvers and verifiers get a program, tensors
and terms; none of them imports this file.
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

VOCABULARY = 256
"""A token is a byte."""


@dataclass(frozen=True)
class Shape:
    """Sizes of a GPT: `width` is divided among `heads`, the hidden layer of a block is four times as wide."""

    layers: int
    heads: int
    width: int
    context: int
    dropout: float = 0.1
    tied: bool = True


class Block(nn.Module):
    """Pre-norm block: causal attention, then a hidden layer, each added to what came in."""

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
        """f32 [B, T, D] to the same."""
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
    """Token and position embedding, blocks, layer norm, head; the head may share the token embedding's table."""

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


def make_model(shape: Shape) -> Gpt:
    """The same initial weights every time."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Gpt(shape)


def objective(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    """Cross-entropy of every next byte of the windows."""
    window = batch["bytes"].long()
    logits = model(window[:, :-1])
    return F.cross_entropy(logits.reshape(-1, VOCABULARY), window[:, 1:].reshape(-1))


def corpus(context: int, limit: int = 1 << 20) -> dict[str, Tensor]:
    """Windows u8 [N, context + 1] side by side over the first `limit` bytes of the standard library's source."""
    data = bytearray()
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        data += path.read_bytes()
        if len(data) >= limit:
            break
    count = min(len(data), limit) // (context + 1)
    text = torch.frombuffer(data, dtype=torch.uint8)[: count * (context + 1)]
    return {"bytes": text.clone().view(count, context + 1)}
