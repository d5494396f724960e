"""Captured operations, random numbers and optimisers have the same bits on CUDA as on the CPU. This holds
both when CUDA runs one kernel after another and when it runs a recorded graph.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.optim import Optimizer

from protocol.capture import CapturedStep
from tests.on_device import other_bits
from tests.unit.capture import expansion_cases, test_operations
from tests.unit.capture.compositions import composition
from tests.unit.capture.operations import Case, Operation, captured
from tests.unit.capture.steps import captured as captured_model
from tests.unit.capture.test_optimisers import Gains, squares
from tests.unit.capture.test_random import MOMENTS
from tests.unit.capture.test_random import captured as captured_draw
from tests.unit.capture.test_traced_optimisers import KINDS

pytestmark = pytest.mark.gpu

COMPOSITIONS = [composition(seed) for seed in range(40)]


@pytest.mark.parametrize("case", test_operations.CASES, ids=str)
def test_operations_with_rules(cuda: torch.device, case: Case, caplog: pytest.LogCaptureFixture) -> None:
    same_bits(captured(Operation(case)), cuda, caplog)


@pytest.mark.parametrize("case", expansion_cases.CASES, ids=str)
def test_expansions(cuda: torch.device, case: Case, caplog: pytest.LogCaptureFixture) -> None:
    same_bits(captured(Operation(case)), cuda, caplog)


@pytest.mark.parametrize("case", COMPOSITIONS, ids=str)
def test_compositions(cuda: torch.device, case: Case, caplog: pytest.LogCaptureFixture) -> None:
    same_bits(captured(Operation(case)), cuda, caplog)


@pytest.mark.parametrize("draw", [draw for _, draw, _, _ in MOMENTS], ids=[each[0] for each in MOMENTS])
def test_draws(cuda: torch.device, draw: Callable[[], Tensor], caplog: pytest.LogCaptureFixture) -> None:
    same_bits(captured_draw(draw), cuda, caplog)


@pytest.mark.parametrize("make", [make for _, make in KINDS], ids=[name for name, _ in KINDS])
def test_optimisers(
    cuda: torch.device, make: Callable[..., Optimizer], caplog: pytest.LogCaptureFixture
) -> None:
    model = Gains()
    same_bits(captured_model(model, squares, make(model.parameters())), cuda, caplog)


def same_bits(step: CapturedStep, device: torch.device, caplog: pytest.LogCaptureFixture) -> None:
    """Require that the device has the CPU's roots after every step, and that nothing prevents recording."""
    step.step(step.initial_state(seed=7))
    caplog.clear()  # messages from the self-tests of the CPU's kernels
    assert not other_bits(step, device)
    assert not [each.getMessage() for each in caplog.records if each.name.startswith("assay")]
