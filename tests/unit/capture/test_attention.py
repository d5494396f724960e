"""Common forms of attention, softmax along any axis, and products with factors and vectors, against torch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from protocol.capture import Objective
from protocol.program.execute import Interpreter
from tests.unit.capture.steps import captured, cross_entropy, drawn, torch_step

LENGTH, WIDTH = 3, 8


class Mixer(nn.Module):
    """Applies `mix` to queries, keys and values, then a head. The queries, keys and values are [2, 2, 3, 4],
    for two sequences of three rows.
    """

    mask: Tensor

    def __init__(self, mix: Callable[[Any, Tensor, Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.all, self.head = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, 3)
        self.bias = nn.Parameter(torch.zeros(LENGTH, LENGTH))
        self.register_buffer("mask", torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril())
        self.mix = mix

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (part.view(2, LENGTH, 2, 4).transpose(1, 2) for part in self.all(x).split(WIDTH, dim=1))
        mixed = self.mix(self, q, k, v) + self.bias.sum() * 0  # every parameter reaches the loss
        logits: Tensor = self.head(mixed.transpose(1, 2).reshape(2 * LENGTH, WIDTH))
        return logits


def by_hand(model: Mixer, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = (q @ k.transpose(-2, -1)) * (1 / math.sqrt(4))
    return scores.masked_fill(~model.mask, -math.inf).softmax(-1) @ v


def added_mask(model: Mixer, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    low = torch.full((), torch.finfo(torch.float32).min)
    scores = q @ k.mT + torch.where(model.mask, 0.0, low) + model.bias
    return torch.softmax(scores, dim=-1, dtype=torch.float32) @ v


def fused(model: Mixer, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, attn_mask=model.mask)


def causal(_: Mixer, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.3)


def grouped(_: Mixer, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k[:, :1], v[:, 1:], enable_gqa=True)


def repeated(_: Mixer, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    k, v = (t[:, :1, None].expand(2, 1, 2, LENGTH, 4).reshape(2, 2, LENGTH, 4) for t in (k, v))
    return torch.softmax(q @ k.transpose(2, 3), -1) @ v


def einsum(_: Mixer, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    p = torch.einsum("bhqd,bhkd->bhqk", q, k).softmax(-1)
    return torch.einsum("bhqk,bhkd->bhqd", p, v)


def transposed(_: Mixer, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention with transposed scores [K, Q] and a softmax along K."""
    p = torch.softmax(k @ q.mT, dim=-2)
    return (v.mT @ p).mT


def baddbmm(model: Mixer, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    q, k, v = (t.reshape(4, LENGTH, 4) for t in (q, k, v))
    scores = torch.baddbmm(model.bias, q, k.mT, beta=0.5, alpha=0.25)
    return torch.bmm(torch.softmax(scores, -1), v).view(2, 2, LENGTH, 4)


def follows(model: nn.Module, objective: Objective = cross_entropy, steps: int = 3) -> None:
    """Assert that losses and weights stay close to torch's, and that kernels give the same bits as bodies."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = captured(model, objective, optimizer)
    state = step.initial_state(5)
    slow = step.step_program.step(state, step.fixed, Interpreter())
    for number in range(steps):
        loss = torch_step(model, objective, optimizer, drawn(step, state))
        state = step.step(state)
        if number == 0:
            assert {name: t.tolist() for name, t in state.items()} == {
                name: t.tolist() for name, t in slow.items()
            }
        torch.testing.assert_close(state["metric.loss"], loss, rtol=2e-3, atol=2e-3)
    for name, p in model.named_parameters():
        torch.testing.assert_close(state[name], p.detach(), rtol=2e-2, atol=2e-3)


@pytest.mark.parametrize(
    "mix",
    [by_hand, added_mask, fused, causal, grouped, repeated, einsum, transposed, baddbmm],
    ids=lambda f: f.__name__,
)
def test_attention_follows_torch(mix: Callable[[Any, Tensor, Tensor, Tensor], Tensor]) -> None:
    torch.manual_seed(1)
    follows(Mixer(mix))


def test_torchs_own_module_and_encoder_layer() -> None:
    class Encoded(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
            self.head = nn.Linear(8, 3)

        def forward(self, x: Tensor) -> Tensor:
            z: Tensor = self.head(self.encoder(x.view(2, 3, 8)).view(6, 8))
            return z

    torch.manual_seed(2)
    follows(Encoded())


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("function", [torch.softmax, torch.log_softmax], ids=lambda f: f.__name__)
def test_softmax_along_any_axis(function: Callable[..., Tensor], axis: int) -> None:
    class Along(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(8, 12), nn.Linear(12, 3)

        def forward(self, x: Tensor) -> Tensor:
            z: Tensor = self.last(function(self.first(x).view(6, 4, 3), dim=axis).reshape(6, 12))
            return z

    torch.manual_seed(3)
    follows(Along())


def test_a_fully_masked_row_is_nan_for_softmax_and_zero_for_the_fused_one() -> None:
    def nothing(model: Mixer, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        hidden = torch.zeros_like(model.mask)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=hidden)

    def spoilt(_: Mixer, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return torch.softmax(q @ k.mT - math.inf, -1) @ v

    torch.manual_seed(4)
    follows(Mixer(nothing))
    step = captured(Mixer(spoilt))
    assert math.isnan(step.step(step.initial_state(0))["metric.loss"].item())


def test_vectors_factors_and_biases() -> None:
    class Products(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w, self.u, self.c = (nn.Parameter(torch.randn(*shape)) for shape in ((8, 3), (8,), (6, 3)))

        def forward(self, x: Tensor) -> Tensor:
            each = torch.mv(x, self.u) + torch.addmv(x[:, 0], x, self.u, beta=0.5, alpha=2)
            whole = torch.addmm(self.c, x, self.w, beta=0.5, alpha=0.25)
            apart = torch.addmm(self.c, x, self.w, beta=0)
            return whole + apart + each[:, None] + torch.dot(self.u, self.u)

    torch.manual_seed(5)
    follows(Products())


def test_attention_copies_nothing_as_large_as_its_scores() -> None:
    """Only queries, keys, values and the output gradient are transposed, never scores or probabilities."""
    program = captured(Mixer(by_hand)).step_program.program
    turned = [i.result.shape for i in program.instructions if i.op.label == "strided"]
    assert turned.count((2, 2, LENGTH, LENGTH)) + turned.count((4, LENGTH, LENGTH)) == 0
    assert turned.count((2, 2, LENGTH, 4)) + turned.count((4, LENGTH, 4)) == 4  # q, k, v and dO, once each


def test_bits_of_a_probability_reach_the_products() -> None:
    """The program's hints state the operand bits of every product."""
    hints = captured(Mixer(by_hand)).hints.values()
    taken: Mapping[str, set[tuple[Any, Any]]] = {
        name: {(h.attributes.get("px"), h.attributes.get("py")) for h in hints if h.name == name}
        for name in ("matmul", "matmul_nt", "matmul_tn", "linear", "linear_grad_weight")
    }
    assert taken["matmul_nt"] == {(13, 13)}  # q k^T, dO V^T
    assert taken["matmul"] == {(20, 20)}  # P V, dS K
    assert taken["matmul_tn"] == {(20, 20)}  # P^T dO, Q^T dS
    assert taken["linear"] == {(13, 13)}
    assert taken["linear_grad_weight"] == {(20, 13)}
