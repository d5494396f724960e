"""NaN and infinity are reported if torch has them too, and refused if only the program or only torch has
them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from protocol.capture import CaptureError
from tests.unit.capture.steps import captured, cross_entropy
from tests.unit.capture.traps.trap import Batch


def plus(term: Callable[[Any], Tensor]) -> Callable[[nn.Module, Batch], Tensor]:
    """An objective that adds `term` of the model to a classifier's loss."""
    return lambda model, batch: cross_entropy(model, batch) + term(model)


@pytest.mark.parametrize(
    ("term", "tensors"),
    [
        (lambda m: torch.log(-m.weight.detach().square().sum()), ["loss"]),
        (lambda m: 1.0 / (0.0 * m.weight.detach().sum()).square(), ["loss"]),
        (lambda m: torch.sqrt((m.bias * 0).square().sum()), ["gradient of bias"]),
    ],
    ids=["a NaN loss", "an infinite loss", "a NaN gradient"],
)
def test_what_is_not_finite_in_torch_either_is_told(
    term: Callable[[Any], Tensor], tensors: list[str]
) -> None:
    step = captured(nn.Linear(8, 3), plus(term))
    assert step.preflight is not None
    assert step.preflight.notes == step.notes
    for tensor in tensors:
        assert any(
            note.startswith(f"{tensor} is not finite, in torch as in the program") for note in step.notes
        )
    figure = step.preflight.loss_error if tensors == ["loss"] else step.preflight.gradient_error
    assert math.isnan(figure)


def test_what_is_not_finite_in_the_program_alone_is_refused() -> None:
    """The exact sine is NaN beyond 2^15 (docs/numerics.md)."""
    with pytest.raises(CaptureError, match=r"aten\.sin\.default computes something else than torch"):
        captured(nn.Linear(8, 3), plus(lambda m: torch.sin(m.weight * 1e6).sum() * 1e-9))


def test_what_is_not_finite_in_torch_alone_is_refused() -> None:
    """torch's partial sums overflow float32; the exact sum does not."""

    def term(model: Any) -> Tensor:
        large = model.bias.detach() * 0 + 3e38
        return torch.cat([large, large, -large, -large]).sum()

    with pytest.raises(CaptureError, match="loss is not finite in torch, not in the program") as caught:
        captured(nn.Linear(8, 3), plus(term))
    (problem,) = caught.value.problems
    assert "float32" in problem.remedy


def test_a_sum_by_index_of_infinities_is_refused() -> None:
    """The sums start from `torch.zeros` without a dtype. In the float64 run that locates the error, this
    tensor is float64 too.
    """

    def term(model: Any) -> Tensor:
        gone = torch.where(model.bias > 9, 0.0, -math.inf)
        sums = torch.zeros(5).index_add(0, torch.tensor([0, 2, 1]), gone)
        return (sums.softmax(0) * torch.arange(5)).sum()

    with pytest.raises(CaptureError, match=r"aten\.index_add\.default computes something else than torch"):
        captured(nn.Linear(8, 3), plus(term))
