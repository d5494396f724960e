"""docs/guide/coverage.md says what `capture` currently does with common models."""

from __future__ import annotations

import pytest
import torch

from benchmarks import coverage
from protocol.capture import CapturedStep


@pytest.fixture(scope="module")
def captured() -> dict[str, CapturedStep]:
    return coverage.captured()


def test_the_page_is_current(captured: dict[str, CapturedStep]) -> None:
    made = coverage.page(captured)
    assert made == coverage.PAGE.read_text(), "run python -m benchmarks.coverage"


def test_every_model_of_the_page_trains(captured: dict[str, CapturedStep]) -> None:
    for step in captured.values():
        before = step.initial_state(1)
        after = step.step(before)
        assert torch.isfinite(after["metric.loss"])
        trained = [
            name for name, x in after.items() if x.is_floating_point() and not torch.equal(x, before[name])
        ]
        assert len(trained) > len(after) / 2
