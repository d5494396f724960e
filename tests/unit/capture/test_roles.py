"""The origin of a contraction's operands decides to how many bits each operand is rounded: the table of
arithmetic.md section 4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from examples import gpt
from protocol.capture import CaptureError, Objective
from protocol.capture.analysis.roles import BITS, OPERANDS, Bits, Role, roles_of, table_of
from protocol.capture.tracing.tracer import trace_step
from tests.unit.capture.steps import captured, cross_entropy

Found = list[tuple[Role, Bits]]
BATCH = {"x": torch.zeros(6, 8), "y": torch.zeros(6, dtype=torch.int64)}


def found(
    model: nn.Module,
    objective: Objective = cross_entropy,
    batch: Mapping[str, Tensor] = BATCH,
    table: Mapping[Role, Bits] = BITS,
) -> Found:
    """Role and bits of every contraction, in the graph's order."""
    traced = trace_step(model, objective, batch)
    roles = roles_of(traced.graph, len(traced.parameters), len(traced.buffers), table)
    return [(roles.of(node), roles.bits(node)) for node in traced.graph.nodes if node.target in OPERANDS]


def count(contractions: Found) -> Counter[Role]:
    return Counter(role for role, _ in contractions)


class Of(nn.Module):
    """A layer [8, 8] and a head [8, 3]; `function` maps the model and x to the input of the head."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.layer, self.head = nn.Linear(8, 8), nn.Linear(8, 3)
        self.gain, self.table = nn.Parameter(torch.ones(8)), nn.Parameter(torch.randn(8, 8))
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        unused = (
            self.layer.bias.sum() + self.layer.weight.sum() + self.gain.sum() + self.table.sum()
        )  # every parameter must reach the loss
        z = self.function(self, x) + unused * 0
        logits: Tensor = self.head(z)
        return logits


def test_layers() -> None:
    contractions = found(
        nn.Sequential(nn.Linear(8, 5), nn.ReLU(), nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3))
    )
    assert count(contractions) == {
        Role.PRODUCT: 3 + 1,  # one gradient passed down from a hidden layer
        Role.WEIGHT_GRADIENT: 3,
        Role.VOCABULARY: 1,  # and one from the logits
    }
    assert set(contractions) == {
        (Role.PRODUCT, (13, 13)),
        (Role.WEIGHT_GRADIENT, (20, 13)),
        (Role.VOCABULARY, (20, 13)),
    }


def test_the_gradient_takes_its_bits_on_either_side() -> None:
    class Right(nn.Module):
        """Weights laid out [in, out], so that their gradient is x^T g."""

        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.randn(8, 3))

        def forward(self, x: Tensor) -> Tensor:
            return x @ self.w

    assert found(Right()) == [(Role.PRODUCT, (13, 13)), (Role.WEIGHT_GRADIENT, (13, 20))]
    left = found(nn.Linear(8, 3, bias=False), lambda m, b: (m(b["x"]) ** 2).mean())
    assert left == [(Role.PRODUCT, (13, 13)), (Role.WEIGHT_GRADIENT, (20, 13))]


@pytest.mark.parametrize("layers", [1, 3])
def test_a_gpt(layers: int) -> None:
    model = gpt.make_model(gpt.Shape(layers, 2, 32, 16))
    batch = {"bytes": torch.zeros(2, 17, dtype=torch.uint8)}
    contractions = found(model, gpt.objective, batch)
    assert count(contractions) == {
        Role.PRODUCT: 1 + layers * (4 + 1 + 1 + 4),  # four layers, q k^T, dP, four gradients passed down
        Role.ATTENTION: layers * 4,  # P V, dV, dQ, dK
        Role.WEIGHT_GRADIENT: 1 + layers * 4,
        Role.VOCABULARY: 1,
    }
    one_sided = found(model, gpt.objective, batch, {**BITS, Role.ATTENTION: (20, 13)})
    # P V, then for each layer P^T dO, Q^T dS, dS K: the 20 bits are on the side of P or dS.
    of_attention = [bits for role, bits in one_sided if role is Role.ATTENTION]
    assert of_attention == [(20, 13)] * layers + [(20, 13), (13, 20), (20, 13)] * layers


@pytest.mark.parametrize("backend", ["fused", "module", "by hand", "sink", "twice"])
def test_every_way_to_write_attention(backend: str) -> None:
    module = nn.MultiheadAttention(8, 2, dropout=0.1, batch_first=True)

    def attend(model: Any, x: Tensor) -> Tensor:
        q, k, v = (model.layer(x).view(1, 6, 2, 4).transpose(1, 2) * (n + 1) for n in range(3))
        if backend == "fused":
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        elif backend == "module":
            attended: Tensor = model.attention(*3 * (model.layer(x)[None],), need_weights=False)[0][0]
            return attended
        else:
            scores = q @ k.mT / 2
            if backend == "sink":
                scores = torch.cat([scores, model.gain.view(1, 2, 4, 1)[:, :, :1].expand(1, 2, 6, 1)], -1)
            p = F.dropout(torch.softmax(scores.masked_fill(scores > 9, -1e4), -1), 0.1)[..., :6]
            mixed = (p.clone() + torch.softmax(scores * 2, -1)[..., :6] if backend == "twice" else p) @ v
        return mixed.transpose(1, 2).reshape(6, 8)

    model = Of(attend)
    if backend == "module":
        model.attention = module
    assert count(found(model))[Role.ATTENTION] == 4


def test_neither_gates_nor_gains_nor_biases_are_mistaken() -> None:
    def gated(model: Any, x: Tensor) -> Tensor:
        z: Tensor = torch.softmax(x[:, :1], 0) * model.layer(x)
        return z

    def scaled(model: Any, x: Tensor) -> Tensor:
        z: Tensor = model.layer(F.layer_norm(x @ model.table, (8,), model.gain))
        return z

    assert count(found(Of(gated)))[Role.ATTENTION] == 0
    contractions = found(Of(scaled))
    # head, layer and table; the gain's gradient is a sum of activation gradients, not a weight gradient.
    assert count(contractions)[Role.WEIGHT_GRADIENT] == 3
    assert count(contractions)[Role.PRODUCT] == 3 + 1


def test_weights_that_are_computed_from_parameters() -> None:
    def tied(model: Any, x: Tensor) -> Tensor:
        z: Tensor = F.linear(F.linear(x, model.layer.weight), model.layer.weight.t())
        return z

    def made(model: Any, x: Tensor) -> Tensor:
        return F.linear(x, model.table * model.gain[:, None]) + x @ torch.cat(
            [model.table[:4], model.table[4:]]
        )

    assert count(found(Of(tied)))[Role.WEIGHT_GRADIENT] == 3
    assert count(found(Of(made)))[Role.WEIGHT_GRADIENT] == 3


def test_bits_that_a_task_overrides() -> None:
    assert table_of({}) == BITS
    assert table_of({"vocabulary": (13, 13)})[Role.VOCABULARY] == (13, 13)
    model = nn.Sequential(nn.Linear(8, 5), nn.ReLU(), nn.Linear(5, 3))
    assert captured(model).root != captured(model, bits={"vocabulary": (13, 13)}).root
    assert captured(model).root == captured(model, bits={"vocabulary": (20, 13)}).root
    for wrong in ({"vocab": (20, 13)}, {"product": (13, 30)}, {"product": 13}, {"attention": (20,)}):
        with pytest.raises(CaptureError, match="bits for"):
            captured(model, bits=wrong)
