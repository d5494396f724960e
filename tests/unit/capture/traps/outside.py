"""Traps of three kinds: steps that leave state on tensors, modules or packages; steps that check whether they
are being compiled; and steps that use TorchScript.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.unit.capture.steps import DATASET, cross_entropy
from tests.unit.capture.traps.trap import Batch, Made, trap, weighted

RARE = {**DATASET, "rare": (torch.arange(50) == 49).to(torch.uint8)}
"""The dataset plus a flag `rare`. The flag is set on only one of the 50 rows, so few batches contain a row
with the flag.
"""


@trap(r"torch\.assay_calls changes|takes .* the first time")
def a_counter_on_torch() -> Made:
    def factor() -> float:
        torch.assay_calls = getattr(torch, "assay_calls", 0) + 1  # type: ignore[attr-defined]
        return 1.0 if torch.assay_calls < 1_000 else 0.5  # type: ignore[attr-defined]

    return weighted(factor)


@trap(r"sys\.assay_calls changes")
def a_counter_on_a_module_of_python() -> Made:
    def factor() -> float:
        setattr(sys, "assay_calls", getattr(sys, "assay_calls", 0) + 1)  # noqa: B010 - the trap
        return 1.0 if getattr(sys, "assay_calls") < 1_000 else 0.5  # noqa: B009

    return weighted(factor)


@trap(r"pytest\.assay_calls changes")
def a_counter_in_an_installed_package() -> Made:
    def factor() -> float:
        pytest.assay_calls = getattr(pytest, "assay_calls", 0) + 1  # type: ignore[attr-defined]
        return 1.0 if pytest.assay_calls < 1_000 else 0.5  # type: ignore[attr-defined]

    return weighted(factor)


@trap(r"len\(pytest\.assay_seen\) changes")
def a_list_that_grows_in_an_installed_package() -> Made:
    pytest.assay_seen = []  # type: ignore[attr-defined]

    def factor() -> float:
        pytest.assay_seen.append(1)  # type: ignore[attr-defined]
        return 1.0 if len(pytest.assay_seen) < 1_000 else 0.5  # type: ignore[attr-defined]

    return weighted(factor)


@trap(r"sets the attribute 'seen' of weight")
def a_counter_on_a_parameter() -> Made:
    def objective(model: nn.Module, batch: Batch) -> Tensor:
        weight: Any = next(model.parameters())
        weight.seen = getattr(weight, "seen", 0) + 1
        loss: Tensor = cross_entropy(model, batch) * weight.seen
        return loss

    return nn.Linear(8, 3), objective


@trap(r"calls\[0\] changes")
def a_counter_that_a_parameter_refers_to() -> Made:
    model: Any = nn.Linear(8, 3)
    model.weight.calls = [0]

    def objective(model: Any, batch: Batch) -> Tensor:
        model.weight.calls[0] += 1
        factor = 1.0 if model.weight.calls[0] < 1_000 else 0.5
        return cross_entropy(model, batch) * factor

    return model, objective


@trap(r"\.seen changes")
def a_counter_on_a_tensor_of_the_closure() -> Made:
    kept: Any = torch.zeros(1)
    kept.seen = 0

    def factor() -> float:
        kept.seen += 1
        return 1.0 if kept.seen < 1_000 else 0.5

    return weighted(factor)


@trap(None)
def an_attribute_of_a_parameter_that_is_read() -> Made:
    model: Any = nn.Linear(8, 3)
    model.bias.no_decay = True

    def objective(model: nn.Module, batch: Batch) -> Tensor:
        decayed = [p for p in model.parameters() if not getattr(p, "no_decay", False)]
        assert len(decayed) == 1
        return cross_entropy(model, batch) + sum(p.square().sum() for p in decayed)

    return model, objective


@trap(None)
def a_parameter_that_is_known_by_its_type() -> Made:
    def objective(model: nn.Module, batch: Batch) -> Tensor:
        assert isinstance(model.weight, nn.Parameter)
        return cross_entropy(model, batch)

    return nn.Linear(8, 3), objective


def by_compiling(factor: Any) -> Made:
    def objective(model: nn.Module, batch: Batch) -> Tensor:
        loss: Tensor = cross_entropy(model, batch) * factor(batch)
        return loss

    return nn.Linear(8, 3), objective


@trap(r"depends? on the data", RARE)
def a_rare_row_that_a_compiled_step_passes_over() -> Made:
    def factor(batch: Batch) -> float:
        return 0.5 if not torch.compiler.is_compiling() and bool(batch["rare"].any()) else 1.0

    return by_compiling(factor)


@trap(None)
def another_step_where_it_is_compiled() -> Made:
    return by_compiling(lambda _: 0.5 if torch.compiler.is_compiling() else 1.0)


@trap(None)
def another_step_where_it_is_compiled_or_told_to() -> Made:
    return by_compiling(lambda _: 0.5 if (False | torch.compiler.is_compiling()) & True else 1.0)


def scripted(function: Any) -> Any:
    """`function` compiled by TorchScript, without torch's deprecation warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return torch.jit.script(function)


def gate(x: Tensor) -> Tensor:
    """x times its sigmoid."""
    return torch.sigmoid(x) * x


@trap(None)
def a_function_of_torchscript() -> Made:
    gated = scripted(gate)
    return nn.Linear(8, 3), lambda model, batch: F.cross_entropy(gated(model(batch["x"])), batch["y"])


@trap(None)
def a_function_of_torchscript_that_is_optimised() -> Made:
    gated = scripted(gate)
    x = torch.ones(4, 3, requires_grad=True)
    for _ in range(3):  # after two runs TorchScript builds a graph with its own derivative
        gated(x).sum().backward()
    assert "DifferentiableGraph" in str(gated.graph_for(x))
    return nn.Linear(8, 3), lambda model, batch: F.cross_entropy(gated(model(batch["x"])), batch["y"])


def halved_where_rare(x: Tensor, rare: Tensor) -> Tensor:
    """Half of x if any element of `rare` is set, otherwise x."""
    if bool(rare.any()):
        x = x * 0.5
    return x


@trap(r"depends? on the data", RARE)
def a_decision_inside_torchscript() -> Made:
    halved = scripted(halved_where_rare)
    return nn.Linear(8, 3), lambda model, batch: F.cross_entropy(
        halved(model(batch["x"]), batch["rare"]), batch["y"]
    )
