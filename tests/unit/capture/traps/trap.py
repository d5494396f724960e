"""The definition of a trap, and helpers that traps share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import Tensor, nn

from protocol.capture import Objective
from tests.unit.capture.steps import DATASET, cross_entropy

Batch = Mapping[str, Tensor]
Made = tuple[nn.Module, Objective]
Maker = Callable[[], Made]


@dataclass(frozen=True)
class Trap:
    """Training code that may be refused. `make` returns the model and the objective. `refusal` is a regex for
    the error, or None if the step can be captured.
    """

    name: str
    make: Callable[[], Made]
    refusal: str | None
    dataset: Mapping[str, Tensor]


TRAPS: list[Trap] = []


def trap(
    refusal: str | None, dataset: Mapping[str, Tensor] = DATASET
) -> Callable[[Callable[[], Made]], Callable[[], Made]]:
    """Register the decorated function as a trap."""

    def register(make: Maker) -> Maker:
        TRAPS.append(Trap(make.__name__, make, refusal, dataset))
        return make

    return register


def weighted(factor: Callable[[], float]) -> Made:
    """A classifier whose loss is multiplied by a Python number."""
    return nn.Linear(8, 3), lambda model, batch: cross_entropy(model, batch) * factor()


class Around(nn.Module):
    """A linear layer; subclasses change its input."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(8, 3)

    def before(self, x: Tensor) -> Tensor:
        return x

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.out(self.before(x))
        return result
