"""A line through four points, in plain torch: the smallest task that `assay submit` captures."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from protocol.capture import CapturedStep, capture


def build(steps: int) -> CapturedStep:
    """The captured training step of a run of `steps` steps."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = nn.Linear(1, 1)
    points = torch.arange(4, dtype=torch.float32)[:, None]
    data = {"x": points, "y": 2 * points + 1}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.125)
    return capture(model, objective, optimizer, data, batch_size=4, steps=steps)


def objective(model: nn.Module, batch: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
    """The mean squared error."""
    loss = ((model(batch["x"]) - batch["y"]) ** 2).mean()
    return loss, {}
