"""Captured batch norm matches torch: with batch or running statistics, with and without gain and bias."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from protocol.capture import CaptureError
from protocol.program.library import CATALOGUE
from tests.unit.capture.steps import DATASET, captured, cross_entropy, drawn, follow

IMAGES = DATASET | {"x": torch.randn(50, 4, 3, 5, generator=torch.Generator().manual_seed(1)) * 3 + 2}


def between(layer: nn.Module) -> nn.Module:
    """A model with the layer between two trained layers, so that its input gradient is needed too."""
    if isinstance(layer, nn.BatchNorm1d):
        return nn.Sequential(nn.Linear(8, 4), layer, nn.Linear(4, 3))
    return nn.Sequential(nn.Conv2d(4, 4, 1), layer, nn.Flatten(), nn.Linear(60, 3))


LAYERS: dict[str, Any] = {
    "images": lambda: nn.BatchNorm2d(4),
    "rows": lambda: nn.BatchNorm1d(4),
    "momentum and eps": lambda: nn.BatchNorm2d(4, momentum=0.4, eps=0.1),
    "no gain": lambda: nn.BatchNorm2d(4, affine=False),
    "no running statistics": lambda: nn.BatchNorm2d(4, track_running_stats=False),
    "neither": lambda: nn.BatchNorm2d(4, affine=False, track_running_stats=False),
    "instance": lambda: nn.InstanceNorm2d(4, affine=True),
}


@pytest.mark.parametrize("name", LAYERS)
def test_batch_norm_follows_torch(name: str) -> None:
    torch.manual_seed(3)
    layer = LAYERS[name]()
    follow(between(layer), DATASET if isinstance(layer, nn.BatchNorm1d) else IMAGES)


@pytest.mark.parametrize("frozen", [False, True])
def test_evaluation_uses_the_running_statistics_and_leaves_them(frozen: bool) -> None:
    torch.manual_seed(3)
    layer = nn.BatchNorm2d(4)
    layer.running_mean = torch.randn(4)
    layer.running_var = torch.rand(4) + 0.5
    layer.eval().requires_grad_(not frozen)
    step = follow(between(layer), IMAGES)
    assert {"1.running_mean", "1.running_var"} < set(step.constants)
    assert not any("running" in name for name in step.step_program.state)


def test_running_statistics_are_state_and_counted() -> None:
    model = between(nn.BatchNorm2d(4))
    step = captured(model, dataset=IMAGES)
    assert {"1.running_mean", "1.running_var", "1.num_batches_tracked"} < set(step.step_program.state)
    state = step.step(step.step(step.initial_state(5)))
    assert state["1.num_batches_tracked"].item() == 2
    model.load_state_dict({name: state[name] for name in model.state_dict()})
    assert model[1].num_batches_tracked.item() == 2  # type: ignore[index]


def test_statistics_used_twice_in_a_step_are_followed_twice() -> None:
    def objective(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        return cross_entropy(model, batch) + cross_entropy(model, {**batch, "x": batch["x"] * 2})

    torch.manual_seed(3)
    model = between(nn.BatchNorm2d(4))
    step = captured(model, objective, dataset=IMAGES)
    state = step.initial_state(5)
    objective(model, drawn(step, state))
    state = step.step(state)
    assert state["1.num_batches_tracked"].item() == 2
    for name, theirs in model.named_buffers():
        torch.testing.assert_close(state[name].to(theirs.dtype), theirs, rtol=1e-3, atol=1e-3)


def test_a_cumulative_average_depends_on_a_counter_and_is_refused() -> None:
    with pytest.raises(CaptureError, match="depends on the data"):
        captured(between(nn.BatchNorm2d(4, momentum=None)), dataset=IMAGES)


def test_a_bias_without_a_gain_is_refused() -> None:
    class Biased(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bias = nn.Parameter(torch.zeros(8))
            self.head = nn.Linear(8, 3)

        def forward(self, x: Tensor) -> Tensor:
            y: Tensor = self.head(F.batch_norm(x, None, None, None, self.bias, training=True))
            return y

    with pytest.raises(CaptureError, match="a bias and no gain"):
        captured(Biased())


def test_sums_over_more_terms_than_float64_holds_are_exact_too() -> None:
    """2^23 terms of 30 bits fill a float64; longer sums use i64. In units of 2^-29, the sum is
    2^53 + 2^52 + 2^29 + 1. Without the last 1, which float64 loses, it would be rounded down.
    """
    g = torch.full((1, 1, 2**24 + 2), 1.5)
    g[..., -2], g[..., -1] = 1.0, 2.0**-29
    zero, one = torch.zeros(1), torch.ones(1)
    total, along = CATALOGUE["batch_norm_sums"].kernel({})([g, torch.ones_like(g), zero, one])
    assert total.item() == along.item() == 3 * 2**23 + 2
