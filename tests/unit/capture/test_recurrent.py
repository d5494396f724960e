"""A recurrent layer is one operation per sequence: results match torch, and programs do not grow with the
sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from protocol.capture import CapturedStep, CaptureError
from protocol.capture.tracing.recurrent import Rolled
from tests.unit.capture.steps import captured, follow

LAYERS: list[tuple[str, Callable[[], nn.Module]]] = [
    ("LSTM", lambda: nn.LSTM(4, 5)),
    (
        "LSTM both ways, two layers, batch first",
        lambda: nn.LSTM(4, 5, 2, bidirectional=True, batch_first=True),
    ),
    ("LSTM without biases", lambda: nn.LSTM(4, 5, bias=False)),
    ("GRU", lambda: nn.GRU(4, 5)),
    ("GRU both ways, two layers", lambda: nn.GRU(4, 5, 2, bidirectional=True)),
    ("RNN", lambda: nn.RNN(4, 5)),
    ("RNN of ReLU, without biases", lambda: nn.RNN(4, 5, nonlinearity="relu", bias=False)),
]
NAMES = [name for name, _ in LAYERS]


@pytest.mark.parametrize("make", [make for _, make in LAYERS], ids=NAMES)
def test_in_float64_results_and_gradients_are_torchs(make: Callable[[], Any]) -> None:
    torch.manual_seed(0)
    layer = make().double()
    x = torch.randn(6, 3, 4, dtype=torch.float64, requires_grad=True)
    plain = _with_gradients(layer, x)
    with Rolled():
        rolled = _with_gradients(layer, x)
    for ours, theirs in zip(rolled, plain, strict=True):
        torch.testing.assert_close(ours, theirs)


def _with_gradients(layer: nn.Module, x: Tensor) -> list[Tensor]:
    """The layer's output, its final states, and gradients with respect to x and the parameters. The gradients
    are those of one weighted sum over the output and the final states.
    """
    output, ends = layer(x)
    results = [output, *(ends if isinstance(ends, tuple) else (ends,))]
    loss = sum((t * torch.linspace(-1, 2, t.numel(), dtype=t.dtype).view_as(t)).sum() for t in results)
    assert isinstance(loss, Tensor)
    return [*results, *torch.autograd.grad(loss, [x, *layer.parameters()])]


class Tagger(nn.Module):
    """Classifies a sequence by its last output."""

    def __init__(self, layer: nn.Module, width: int) -> None:
        super().__init__()
        self.layer, self.out = layer, nn.Linear(width, 3)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.out(self.layer(x)[0][:, -1])
        return result


def sequences(length: int) -> dict[str, Tensor]:
    """20 labelled sequences."""
    g = torch.Generator().manual_seed(1)
    return {"x": torch.randn(20, length, 4, generator=g), "y": torch.randint(0, 3, (20,), generator=g)}


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_a_training_follows_torch(kind: Any) -> None:
    torch.manual_seed(0)
    step = follow(Tagger(kind(4, 6, batch_first=True), 6), sequences(9), steps=2)
    assert {name for _, name in step.coverage_counts} & {"lstm_grad", "gru_grad", "rnn_grad"}


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_a_program_does_not_grow_with_the_sequence(kind: Any) -> None:
    def size(length: int) -> int:
        step = captured(Tagger(kind(4, 6, batch_first=True), 6), dataset=sequences(length), preflight=False)
        return sum(len(frame.instructions) for frame in step.step_program.program.closure())

    assert size(300) < 1.5 * size(20)


def unrolled(step: CapturedStep) -> bool:
    """Whether every recurrent layer was traced step by step instead of as a single operation."""
    return not any(operation.startswith("assay.") for operation, _ in step.coverage_counts)


@pytest.mark.filterwarnings("ignore:LSTM with projections")
def test_projections_are_traced_step_by_step() -> None:
    torch.manual_seed(0)
    layer = nn.LSTM(4, 6, proj_size=2, batch_first=True)
    assert unrolled(follow(Tagger(layer, 2), sequences(3), steps=1))


def test_dropout_between_layers_is_the_programs() -> None:
    torch.manual_seed(0)
    layer = nn.LSTM(4, 6, 2, dropout=0.5, batch_first=True)
    step = captured(Tagger(layer, 6), dataset=sequences(5))
    assert "keep_mask" in {name for _, name in step.coverage_counts}
    assert step.preflight is not None
    assert step.preflight.gradient_error < 1e-2


@pytest.mark.parametrize("weight", [1e-3, 3e-4])
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_a_penalty_on_gradients_is_refused(kind: Any, weight: float) -> None:
    def penalised(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        x = batch["x"].clone().requires_grad_()
        y = model(x)
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        return F.cross_entropy(y, batch["y"]) + weight * g.square().sum()

    with pytest.raises(CaptureError, match="second derivative of a recurrent layer") as caught:
        captured(Tagger(kind(4, 6, batch_first=True), 6), penalised, dataset=sequences(5))
    assert "torch.autograd.grad(y.sum()" in caught.value.problems[0].source
