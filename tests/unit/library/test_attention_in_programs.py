"""Attention in captured programs: every spelling is recognised and fused with the same bits.

Attention is not fused where the program reads an intermediate value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from examples import gpt
from protocol.capture import CapturedStep, capture
from protocol.numerics.kernels.dispatch import VARIABLE
from protocol.numerics.kernels.fused import FUSED
from protocol.program.execute import Interpreter, Site
from protocol.program.library import fusions, kernels
from protocol.program.step import State

CONTEXT, HEADS, WIDTH = 20, 2, 16
Attend = Callable[[Tensor, Tensor, Tensor], Tensor]

pytestmark = pytest.mark.skipif(not any(f.available() for f in FUSED), reason="the library is not built")


def written_out(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(
        torch.ones(CONTEXT, CONTEXT, dtype=torch.bool).triu(1), -math.inf
    )
    return F.dropout(scores.softmax(-1), 0.25) @ v


def torchs(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=0.25)


def without_mask(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.mT).softmax(-1) @ v


def biased(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention with a bias by distance, as in ALiBi. The same table holds the mask."""
    place = torch.arange(CONTEXT)
    distance = (place[None, :] - place[:, None]).float()
    table = torch.where(distance > 0, torch.finfo(torch.float32).min, 0.25 * distance)
    return torch.softmax(q @ k.mT * 0.5 + table, -1) @ v


SPELLINGS = (written_out, torchs, without_mask, biased)


class Model(nn.Module):
    """A model with one attention layer that maps bytes to logits."""

    def __init__(self, attend: Attend) -> None:
        super().__init__()
        self.attend = attend
        self.tokens = nn.Embedding(gpt.VOCABULARY, WIDTH)
        self.both, self.head = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, gpt.VOCABULARY)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens)
        batch = x.shape[0]
        q, k, v = (
            part.view(batch, CONTEXT, HEADS, -1).transpose(1, 2) for part in self.both(x).split(WIDTH, 2)
        )
        mixed = self.attend(q, k, v).transpose(1, 2).reshape(batch, CONTEXT, WIDTH)
        logits: Tensor = self.head(x + mixed)
        return logits


def captured(attend: Attend, batch: int) -> CapturedStep:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = Model(attend)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    return capture(model, gpt.objective, optimizer, gpt.corpus(CONTEXT, 1 << 14), batch_size=batch, steps=4)


def after(step: CapturedStep, interpreter: Interpreter, steps: int = 2) -> State:
    state: State = step.initial_state(7)
    for _ in range(steps):
        state = step.step_program.step(state, step.fixed, interpreter)
    return state


def equal(x: State, y: State) -> bool:
    return all(
        torch.equal(x[name].view(torch.uint8), y[name].view(torch.uint8)) for name in x if x[name].dim()
    )


class Watching(Interpreter):
    """Records the shapes of all computed values."""

    def results(self, site: Site, operands: Sequence[Tensor]) -> tuple[Tensor, ...]:
        found = super().results(site, operands)
        self.shapes = getattr(self, "shapes", set()) | {tuple(x.shape) for x in found}
        return found


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("attend", SPELLINGS, ids=lambda f: f.__name__)
def test_every_spelling_runs_as_one_with_the_same_bits(
    attend: Attend, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = captured(attend, batch)
    program = step.step_program.program
    assert len(fusions(program, kernels(program, step.hints))) == 2
    watching = Watching(kernels(program, step.hints), fuse=fusions)
    fused = after(step, watching)
    assert not {shape for shape in watching.shapes if len(shape) > 2 and shape[-2:] == (CONTEXT, CONTEXT)}
    assert equal(fused, after(step, Interpreter(kernels(program, step.hints))))
    assert equal(fused, after(step, Interpreter()))
    monkeypatch.setenv(VARIABLE, "float64")
    assert equal(fused, after(step, Interpreter(kernels(program, step.hints), fuse=fusions)))


def test_probabilities_that_somebody_reads_stay() -> None:
    def shown(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        probabilities = (q @ k.mT).softmax(-1)
        return probabilities @ v + probabilities.amax(-1, keepdim=True)

    step = captured(shown, 2)
    program = step.step_program.program
    assert not fusions(program, kernels(program, step.hints))
    assert equal(step.step(step.initial_state(7)), after(step, Interpreter(), 1))


def test_without_kernels_nothing_is_recognised() -> None:
    step = captured(torchs, 2)
    assert not fusions(step.step_program.program, {})
