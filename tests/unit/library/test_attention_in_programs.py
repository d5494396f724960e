"""Attention in captured programs: every spelling is recognised and fused, and fusing it does not change the
bits.

Attention is not fused where the program reads an intermediate value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from examples import gpt
from protocol.capture import CapturedStep, capture
from protocol.numerics.kernels.dispatch import VARIABLE
from protocol.numerics.kernels.fused import FUSED
from protocol.numerics.types import DType
from protocol.program.builder import Builder, Value
from protocol.program.execute import Interpreter, Site
from protocol.program.library import CATALOGUE, fusions, hints, kernels
from protocol.program.program import Program
from protocol.program.step import State
from protocol.program.types import TensorType

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
    """Attention with a bias that depends on the distance, as in ALiBi. One table holds both the bias and the mask."""
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


D, E = 8, 6
WIDTHS = {"of_q": D, "of_k": D, "of_v": E, "of_p": E}
"""For each product of the backward pass, the width of its second factor."""


def backward_program(widths: Mapping[str, int]) -> Program:
    """Attention of 8 queries to 16 keys, and its backward pass. Four products of the backward pass have a
    separate input as their second factor, in place of q, k, v or the gradient. `widths` gives the widths of
    these inputs.
    """
    m, n = 8, 16
    b = Builder("attention")

    def product(name: str, x: Value, y: Value) -> Value:
        found: Value = CATALOGUE[name].call(b, x, y, px=20, py=20)
        return found

    q, k, v = (b.input(TensorType(DType.F32, (2, *size))) for size in ((m, D), (n, D), (n, E)))
    sizes = ((m, "of_p"), (n, "of_p"), (n, "of_q"), (m, "of_k"), (m, "of_v"))
    g, of_p, of_q, of_k, of_v = (b.input(TensorType(DType.F32, (2, rows, widths[to]))) for rows, to in sizes)
    p = CATALOGUE["softmax"].call(b, product("matmul_nt", q, k), safe=False)
    s = CATALOGUE["softmax_grad"].call(b, product("matmul_nt", g, of_p), p)
    b.output(product("matmul", p, v))
    b.output(product("matmul", s, of_q))
    b.output(product("matmul_tn", s, of_k))
    b.output(product("matmul_tn", p, of_v))
    return b.build()


@pytest.mark.parametrize("width", [4, 5, 7, 24])
@pytest.mark.parametrize("changed", [None, *WIDTHS])
def test_products_by_tensors_of_another_width_are_not_fused(changed: str | None, width: int) -> None:
    """The kernel would read beyond such tensors, because it has one width for queries and keys, and one for
    values.
    """
    program = backward_program(WIDTHS if changed is None else {**WIDTHS, changed: width})
    generator = torch.Generator().manual_seed(1)
    inputs = [torch.randn(type_.shape, generator=generator) for type_ in program.inputs]
    known = kernels(program, hints(program))
    assert len(fusions(program, known)) == (2 if changed is None else 0)
    plain, fused = Interpreter().run(program, inputs), Interpreter(known, fuse=fusions).run(program, inputs)
    assert all(
        torch.equal(one.view(torch.int32), other.view(torch.int32)) for one, other in zip(plain, fused)
    )
