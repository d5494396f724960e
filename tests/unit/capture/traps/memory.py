"""Writes, views, and tensors from outside the step."""

from __future__ import annotations

from collections.abc import Callable

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


@trap(r"replaces parameter average[\s\S]*replaces parameter codes")
def a_parameter_that_is_replaced() -> Made:
    class Quantised(Around):
        """Codes that follow the batches' means, as in VQ-VAE with moving averages."""

        def __init__(self) -> None:
            super().__init__()
            self.average, self.codes = nn.Parameter(torch.randn(8)), nn.Parameter(torch.randn(8))

        def before(self, x: Tensor) -> Tensor:
            y = x + self.codes
            self.average = nn.Parameter(self.average * 0.9 + x.mean(0) * 0.1)
            self.codes = nn.Parameter(self.average / 2)
            return y

    return Quantised(), cross_entropy


@trap(r"replaces parameter extra")
def a_parameter_that_is_added() -> Made:
    class Growing(Around):
        def before(self, x: Tensor) -> Tensor:
            self.extra = nn.Parameter(x.mean(0).detach())
            return x + self.extra

    return Growing(), cross_entropy


class Assigned(Around):
    """Assigns to `.data` of a buffer."""

    kept: Tensor
    other: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("kept", torch.zeros(8))
        self.register_buffer("other", torch.zeros(8))

    def before(self, x: Tensor) -> Tensor:
        self.kept.data = self.kept.data
        self.kept.data = self.kept.data * 0.9 + x.mean(0)
        return x + self.kept


@trap(None)
def data_of_a_buffer() -> Made:
    return Assigned(), cross_entropy


@trap(r"makes two tensors share memory")
def data_of_another_buffer() -> Made:
    class Shared(Assigned):
        def before(self, x: Tensor) -> Tensor:
            self.kept.data = self.other.data
            self.other += x.mean(0)
            return x + self.kept

    return Shared(), cross_entropy


@trap(r"turns torch\.float32 \(8,\) into torch\.float32 \(6, 8\)")
def data_of_another_shape() -> Made:
    class Growing(Assigned):
        def before(self, x: Tensor) -> Tensor:
            self.kept.data = x.clone()
            return x + self.kept

    return Growing(), cross_entropy


@trap(r"writes into parameter out\.weight")
def data_of_a_parameter() -> Made:
    class Limited(Around):
        """Limits the norms of its weights, as EEGNet does."""

        def before(self, x: Tensor) -> Tensor:
            self.out.weight.data = torch.renorm(self.out.weight.data, 2, 0, maxnorm=0.3)
            return x

    return Limited(), cross_entropy


@trap(r"writes into parameter follower\.weight")
def data_of_a_frozen_parameter() -> Made:
    class Following(Around):
        """A frozen layer that follows a trained one, as MoCo's key encoder does."""

        def __init__(self) -> None:
            super().__init__()
            self.leader, self.follower = nn.Linear(8, 8), nn.Linear(8, 8).requires_grad_(False)

        def before(self, x: Tensor) -> Tensor:
            for p, of in zip(self.follower.parameters(), self.leader.parameters(), strict=True):
                p.data = p.data * 0.999 + of.data * (1 - 0.999)
            y: Tensor = self.leader(x) + self.follower(x)
            return y

    return Following(), cross_entropy


@trap(r"leaves buffer kept in the memory of out\.weight, .*\n.*\.clone\(\)")
def a_parameter_that_a_buffer_keeps() -> Made:
    class Recording(Around):
        kept: Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("kept", self.out.weight.detach().clone())

        def before(self, x: Tensor) -> Tensor:
            moved = (self.out.weight - self.kept).square().mean()
            self.kept = self.out.weight.detach()
            return x + moved

    return Recording(), cross_entropy


def with_two_buffers(step: Callable[[nn.Module], None]) -> Made:
    """A classifier with two buffers, which `step` writes after they were used."""
    model = nn.Linear(8, 3)
    model.register_buffer("first", torch.zeros(8))
    model.register_buffer("second", torch.ones(8))

    def objective(model: nn.Module, batch: Batch) -> Tensor:
        first, second = model.get_buffer("first"), model.get_buffer("second")
        loss = F.cross_entropy(model(batch["x"] * second + first), batch["y"])
        step(model)
        return loss

    return model, objective


@trap(r"leaves buffer second in the memory of first")
def a_buffer_that_another_keeps() -> Made:
    def step(model: nn.Module) -> None:
        assert isinstance(model.first, Tensor)
        model.first.add_(0.1)
        model.second = model.first

    return with_two_buffers(step)


@trap(None)
def buffers_that_are_exchanged() -> Made:
    def step(model: nn.Module) -> None:
        model.first, model.second = model.second, model.first

    return with_two_buffers(step)


@trap(None)
def a_buffer_that_keeps_what_another_held() -> Made:
    def step(model: nn.Module) -> None:
        assert isinstance(model.first, Tensor)
        model.second = model.first
        model.first = model.first + 0.1

    return with_two_buffers(step)
