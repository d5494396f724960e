"""The bias cases of arithmetic.md section 4 in captured steps. With the bits that each role has by default,
the results are right; with 13 bits, they are wrong.

`tests/unit/numerics/test_bias.py` has the same cases for single products.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from protocol.capture import Objective, capture
from protocol.capture.analysis.roles import Bits
from protocol.program.library import CATALOGUE
from tests.unit.capture.steps import cross_entropy

WORDS = 65_536


def first_step(
    model: nn.Module,
    dataset: Mapping[str, Tensor],
    batch: int,
    bits: Mapping[str, Bits],
    objective: Objective = cross_entropy,
) -> tuple[dict[str, Tensor], Tensor]:
    """The state after one step of plain SGD at rate 1, and the rows that the step drew."""
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    step = capture(model, objective, optimizer, dataset, batch_size=batch, steps=1, bits=bits)
    state = step.initial_state(1)
    rows = next(iter(dataset.values())).shape[0]
    (drawn,) = CATALOGUE["draw_batch"].kernel({"batch": batch, "rows": rows, "stream": 0})(
        [state["key"], state["step"]]
    )
    return step.step(state), drawn.long()


@pytest.mark.parametrize(
    ("bits", "biased"), [({}, False), ({"attention": (13, 13)}, True)], ids=["by role", "13"]
)
def test_an_attention_sink_keeps_its_tail(bits: Mapping[str, Bits], biased: bool) -> None:
    """One key takes 0.94 of the probability; the other 4,095 share the rest and must still count in P V."""
    generator = torch.Generator().manual_seed(0)
    tail = torch.log_softmax(torch.randn(40, 4095, generator=generator) * 0.3, 1) + torch.tensor(0.06).log()
    scores = torch.cat([torch.full((40, 1), 0.94).log(), tail], 1)

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.values = nn.Parameter(1.0 + 0.1 * torch.randn(4096, 8, generator=generator))
            self.values.data[0] = 0.0  # the sink's own value does not matter

        def forward(self, scores: Tensor) -> Tensor:
            return torch.softmax(scores, 1) @ self.values

    model = Attention()
    values = model.values.detach().double()
    after, drawn = first_step(model, {"scores": scores}, 32, bits, lambda m, b: m(b["scores"]).sum())
    p = torch.softmax(scores[drawn].double(), 1)
    assert (abs(float(after["metric.loss"]) / float((p @ values).sum()) - 1) > 0.9) is biased
    # The values' gradient is P summed over similar queries: unbiased with either number of bits.
    gradient = values - after["values"].double()
    torch.testing.assert_close(gradient.sum(), 8 * p.sum(), rtol=1e-3, atol=0.0)


@pytest.mark.parametrize(
    ("bits", "biased"), [({}, False), ({"weight_gradient": (13, 13)}, True)], ids=["by role", "13"]
)
def test_rare_words_are_learnt_as_often_as_they_come(bits: Mapping[str, Bits], biased: bool) -> None:
    """At a unigram model's optimum, each token adds a rare word's probability to that word's gradient, and
    each occurrence of the word adds -1.
    """
    seen = torch.tensor([WORDS - 6, 1, 2, 3])
    labels = torch.repeat_interleave(torch.arange(4), seen)
    model = nn.Linear(1, 4, bias=False)
    model.weight.data = (seen / WORDS).log()[:, None]
    before = model.weight.detach().clone()
    after, drawn = first_step(model, {"x": torch.ones(WORDS, 1), "y": labels}, WORDS, bits)
    got = (before - after["weight"]).double().flatten() * WORDS
    true = seen - torch.bincount(labels[drawn], minlength=4)
    # The signed sum is the error in the rare words' total probability that the model would learn.
    assert (abs(float((got - true)[1:].sum())) > 0.5 * 6) is biased
    if not biased:
        torch.testing.assert_close(got[1:], true[1:].double(), rtol=1e-2, atol=2e-2)


@pytest.mark.parametrize(
    ("bits", "biased"), [({}, False), ({"vocabulary": (13, 13)}, True)], ids=["by role", "13"]
)
def test_the_vocabulary_as_a_whole_reaches_what_is_below_the_head(
    bits: Mapping[str, Bits], biased: bool
) -> None:
    """The probabilities of 65,536 words, about 2^-16 each, together balance a label's -1. With 13 bits, all
    of them round to zero.
    """
    generator = torch.Generator().manual_seed(2)

    class Constant(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.hidden = nn.Parameter(torch.tensor([[1.0, 0.0]]))
            self.head = nn.Parameter(1.0 + 0.3 * torch.randn(WORDS, 2, generator=generator))

        def forward(self, x: Tensor) -> Tensor:
            return F.linear(self.hidden.expand(x.shape[0], 2), self.head)

    model = Constant()
    labels = torch.tensor([5, 6, 7, 8])
    head, before = model.head.detach().double(), model.hidden.detach().double()
    after, drawn = first_step(model, {"x": torch.zeros(4, 1), "y": labels}, 3, bits)
    expected = torch.softmax(head[:, 0], 0) @ head
    error = before - after["hidden"].double() - (expected - head[labels[drawn]].mean(0))
    assert (float((error / expected).abs().max()) > 0.5) is biased
    assert biased or float((error / expected).abs().max()) < 2e-3
