"""Every trap is either refused with its reason or computes what torch computes."""

from __future__ import annotations

import re

import pytest
import torch

from protocol.capture import CaptureError
from tests.unit.capture.steps import captured
from tests.unit.capture.traps import TRAPS, Trap


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.name)
def test_a_trap_is_refused_or_equals_torch(trap: Trap) -> None:
    torch.manual_seed(0)
    model, objective = trap.make()
    if trap.refusal is None:
        report = captured(model, objective, dataset=trap.dataset).preflight
        assert report is not None
        assert report.loss_error < 1e-3
        assert report.gradient_error < 1e-2
        return
    with pytest.raises(CaptureError) as caught:
        captured(model, objective, dataset=trap.dataset)
    assert re.search(trap.refusal, str(caught.value)), str(caught.value)
    assert all(problem.remedy for problem in caught.value.problems)


def test_there_are_traps_enough() -> None:
    assert len(TRAPS) >= 60
    assert len({trap.name for trap in TRAPS}) == len(TRAPS)
    assert sum(trap.refusal is None for trap in TRAPS) >= 10
