"""CTC and transformer masks: torch's code for them reads tensor values. Capture replaces this code, and
restores it afterwards.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules import transformer

from protocol.capture.tracing.ctc import ctc_loss
from tests.unit.capture.operations import Case, by_capture, by_torch
from tests.unit.capture.steps import captured

SOUNDS, CLASSES = 8, 5
PADDED = torch.tensor([[1, 1, 2], [3, 3, 3], [1, 2, 4], [2, 0, 0]])
IN_A_ROW = torch.tensor([1, 1, 2, 3, 3, 3, 1, 2, 2])
SPOKEN, WRITTEN = torch.tensor([8, 8, 7, 6]), torch.tensor([3, 3, 2, 1])
TOO_SHORT = torch.tensor([8, 4, 7, 6])


def both(
    logits: Tensor,
    labels: Tensor,
    spoken: object,
    written: object,
    reduction: str = "mean",
    zero: bool = False,
) -> list[tuple[Tensor, Tensor]]:
    """Loss and gradient from torch and from `ctc_loss`."""
    found = []
    for ours in (False, True):
        x = logits.clone().requires_grad_()
        number = {"none": 0, "mean": 1, "sum": 2}[reduction]
        loss = (
            ctc_loss(x, labels, spoken, written, 0, number, zero)  # type: ignore[arg-type]
            if ours
            else F.ctc_loss(x, labels, spoken, written, 0, reduction, zero)  # type: ignore[arg-type]
        )
        found.append((loss.detach(), torch.autograd.grad(loss.sum(), x)[0]))
    return found


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize(
    ("labels", "spoken", "written"),
    [
        (PADDED, SPOKEN, WRITTEN),
        (PADDED, SPOKEN, WRITTEN * torch.tensor([1, 1, 0, 1])),
        (PADDED, SPOKEN * torch.tensor([1, 1, 0, 1]), WRITTEN * torch.tensor([1, 1, 0, 1])),
        (PADDED, (8, 8, 7, 6), (3, 3, 2, 1)),
        (IN_A_ROW, SPOKEN, WRITTEN),
        (IN_A_ROW, (8, 8, 7, 6), (3, 3, 2, 1)),
    ],
    ids=["padded", "one empty", "one without frames", "numbers", "in a row", "in a row, numbers"],
)
def test_ctc_is_torchs(labels: Tensor, spoken: object, written: object, reduction: str) -> None:
    """Loss and gradient equal torch's for normalised log-probabilities, and also for inputs that are not
    normalised.
    """
    logits = torch.randn(SOUNDS, 4, CLASSES, generator=torch.Generator().manual_seed(1)).double()
    for x in (logits.log_softmax(-1), logits):
        torch.testing.assert_close(*both(x, labels, spoken, written, reduction))


def test_ctc_of_one_row_and_of_what_cannot_be_is_torchs() -> None:
    logits = torch.randn(SOUNDS, 4, CLASSES).double().log_softmax(-1)
    torch.testing.assert_close(*both(logits[:, 0], PADDED[0], SPOKEN[0], WRITTEN[0], "none"))
    for spoken in (TOO_SHORT, TOO_SHORT * torch.tensor([1, 0, 1, 1])):
        torch.testing.assert_close(*both(logits, PADDED, spoken, WRITTEN, "mean", zero=True))
    (theirs, _), (ours, _) = both(logits, PADDED, TOO_SHORT, WRITTEN, "none")
    torch.testing.assert_close(theirs, ours)
    assert ours.isinf().tolist() == [False, True, False, False]


def test_ctc_is_captured() -> None:
    case = Case(
        "ctc",
        lambda x, y, spoken, written: F.ctc_loss(x.log_softmax(-1), y, spoken, written),
        [(SOUNDS, 4, CLASSES), PADDED, SPOKEN, WRITTEN],
    )
    result, gradients = by_capture(case)
    expected, expected_gradients = by_torch(case)
    for ours, theirs in zip([result, *gradients], [expected, *expected_gradients], strict=True):
        torch.testing.assert_close(ours.double(), theirs.double(), rtol=1e-4, atol=1e-4)


class Masked(nn.Module):
    """Encoder and decoder with masks, but without `is_causal`."""

    def __init__(self, mask: Tensor) -> None:
        super().__init__()
        layers: dict[str, Any] = {"nhead": 2, "dim_feedforward": 8, "dropout": 0.0, "batch_first": True}
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(4, **layers), 1, enable_nested_tensor=False
        )
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(4, **layers), 1)
        self.head = nn.Linear(4, 3)
        self.register_buffer("mask", mask)

    def forward(self, x: Tensor) -> Tensor:
        x = x.view(-1, 2, 4)
        memory = self.encoder(x, mask=self.mask)
        scores: Tensor = self.head(self.decoder(x, memory, tgt_mask=self.mask).mean(1))
        return scores


@pytest.mark.parametrize("value", [0.0, float("-inf")], ids=["no mask", "causal"])
def test_a_mask_of_a_transformer_is_applied_as_it_is_given(value: float) -> None:
    before = torch.ctc_loss, transformer._detect_is_causal_mask
    step = captured(Masked(torch.full((2, 2), value).triu(1)))
    assert step.preflight is not None
    assert step.preflight.loss_error < 1e-3
    assert (torch.ctc_loss, transformer._detect_is_causal_mask) == before
