"""Writes, views, and tensors from outside the step."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.unit.capture.steps import cross_entropy
from tests.unit.capture.traps.trap import Around, Batch, Made, trap


@trap(None)
def a_write_through_a_view() -> Made:
    def objective(model: nn.Module, batch: Batch) -> Tensor:
        x = batch["x"].clone()
        x[:, 2:4].T.mul_(3.0)
        x.view(-1)[5:9] = 0.5
        return F.cross_entropy(model(x), batch["y"])

    return nn.Linear(8, 3), objective


@trap(r"writes into batch tensor")
def a_write_into_the_batch() -> Made:
    def objective(model: nn.Module, batch: Batch) -> Tensor:
        batch["x"].mul_(2)
        return cross_entropy(model, batch)

    return nn.Linear(8, 3), objective


@trap(r"writes into parameter")
def a_write_into_a_parameter() -> Made:
    def objective(model: nn.Module, batch: Batch) -> Tensor:
        with torch.no_grad():
            next(model.parameters()).clamp_(-0.1, 0.1)
        return cross_entropy(model, batch)

    return nn.Linear(8, 3), objective


@trap(None)
def a_buffer_written_through_its_view() -> Made:
    class Recording(Around):
        kept: Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("kept", torch.zeros(4, 8))

        def before(self, x: Tensor) -> Tensor:
            view = self.kept[1:3]
            view.copy_(x[:2].detach())
            return x + self.kept.mean(0)

    return Recording(), cross_entropy


@trap(None)
def a_view_that_is_returned() -> Made:
    def objective(model: nn.Module, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        logits = model(batch["x"])
        losses = torch.stack([F.cross_entropy(logits, batch["y"]), logits.square().mean()])
        return losses[0], {"size": losses[1]}

    return nn.Linear(8, 3), objective


@trap(r"outside the model and the batch")
def a_tensor_of_the_closure() -> Made:
    kept = torch.ones(8)
    return nn.Linear(8, 3), lambda model, batch: F.cross_entropy(model(batch["x"] * kept), batch["y"])


@trap(r"depends? on the data")
def a_default_that_depends_on_the_data() -> Made:
    def objective(model: nn.Module, batch: Batch, classes: int | None = None) -> Tensor:
        count = int(batch["y"].max()) + 1 if classes is None else classes
        return cross_entropy(model, batch) / count

    return nn.Linear(8, 3), objective


@trap(None)
def a_size_of_the_batch() -> Made:
    return nn.Linear(
        8, 3
    ), lambda model, batch: F.cross_entropy(model(batch["x"]), batch["y"], reduction="sum") / len(batch["x"])


@trap(None)
def a_parameter_in_two_places() -> Made:
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8), nn.Linear(8, 3))
    model[2].weight = model[0].weight
    return model, cross_entropy
