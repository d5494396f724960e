"""Numbers, flags and containers that Python changes from step to step."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.unit.capture.steps import cross_entropy
from tests.unit.capture.traps.trap import Around, Batch, Made, trap, weighted


@trap(r"calls changes from 1 to 2")
def a_counter_in_a_closure() -> Made:
    calls = 0

    def factor() -> float:
        nonlocal calls
        calls += 1
        return min(1.0, calls / 10)

    return weighted(factor)


@trap(r"changes from 1 to 2")
def a_counter_that_acts_much_later() -> Made:
    calls = [0]

    def factor() -> float:
        calls[0] += 1
        return 1.0 if calls[0] < 1_000 else 0.5

    return weighted(factor)


@trap(r"\['step'\] changes")
def a_counter_in_a_dict() -> Made:
    kept = {"step": 0}

    def factor() -> float:
        kept["step"] += 1
        return float(kept["step"])

    return weighted(factor)


@trap(r"len\(.*seen.*\) changes")
def the_length_of_a_list() -> Made:
    seen: list[None] = []

    def factor() -> float:
        seen.append(None)
        return 1.0 / len(seen)

    return weighted(factor)


@trap(r"len\(.*recent.*\) changes")
def the_length_of_a_deque() -> Made:
    recent: deque[int] = deque(maxlen=5)

    def factor() -> float:
        recent.append(1)
        return float(len(recent))

    return weighted(factor)


@trap(r"seen changes|len\(.*seen.*\) changes")
def a_set_that_grows() -> Made:
    seen: set[int] = set()

    def factor() -> float:
        seen.add(len(seen))
        return float(len(seen))

    return weighted(factor)


GLOBAL_CALLS = 0


@trap(r"GLOBAL_CALLS changes")
def a_global_counter() -> Made:
    def factor() -> float:
        global GLOBAL_CALLS
        GLOBAL_CALLS += 1
        return float(GLOBAL_CALLS)

    return weighted(factor)


@trap(r"'calls'\] changes")
def a_counter_on_a_function() -> Made:
    def factor() -> float:
        factor.calls += 1  # type: ignore[attr-defined]
        return float(factor.calls)  # type: ignore[attr-defined]

    factor.calls = 0  # type: ignore[attr-defined]
    return weighted(factor)


@trap(r"defaults of .* changes")
def a_counter_in_a_default_argument() -> Made:
    def factor(kept: list[int] = [0]) -> float:  # noqa: B006 - the trap
        kept[0] += 1
        return float(kept[0])

    return weighted(factor)


@trap(r"steps changes from 1 to 2")
def a_counter_on_a_module() -> Made:
    class Counting(Around):
        steps = 0

        def before(self, x: Tensor) -> Tensor:
            self.steps += 1
            return x * self.steps

    return Counting(), cross_entropy


@trap(r"Shared\.steps changes")
def a_counter_on_a_class() -> Made:
    class Shared(Around):
        steps = 0

        def before(self, x: Tensor) -> Tensor:
            Shared.steps += 1
            return x * Shared.steps

    return Shared(), cross_entropy


class Annealing:
    """A plain object that changes at every call."""

    def __init__(self) -> None:
        self.progress = 0.0

    def __call__(self) -> float:
        self.progress += 0.1
        return self.progress


@trap(r"progress changes")
def a_counter_in_an_object() -> Made:
    return weighted(Annealing())


@trap(r"progress changes")
def a_counter_behind_a_bound_method() -> Made:
    return weighted(Annealing().__call__)


@trap(r"progress changes")
def a_counter_behind_a_partial() -> Made:
    annealing = Annealing()
    return nn.Linear(8, 3), partial(
        lambda factor, model, batch: cross_entropy(model, batch) * factor(), annealing
    )


@trap(r"counted changes")
def an_endless_count() -> Made:
    counted = itertools.count(1)
    return weighted(lambda: float(next(counted)))


@trap(r"values changes|takes .* the first time")
def a_generator() -> Made:
    def ramp() -> Iterator[float]:
        level = 0.0
        while True:
            level += 0.1
            yield level

    values = ramp()
    return weighted(lambda: next(values))


@trap(r"level changes")
def a_numpy_array_that_counts() -> Made:
    level = np.zeros(1)

    def factor() -> float:
        level[0] += 1
        return float(level[0])

    return weighted(factor)


@trap(r"phase changes")
def a_phase_that_alternates() -> Made:
    class Alternating(Around):
        phase = "even"

        def before(self, x: Tensor) -> Tensor:
            self.phase = "odd" if self.phase == "even" else "even"
            return x if self.phase == "odd" else -x

    return Alternating(), cross_entropy


@trap(r"not the same every time|initialised changes")
def a_flag_that_is_set_once() -> Made:
    class Initialised(Around):
        initialised = False

        def before(self, x: Tensor) -> Tensor:
            if not self.initialised:
                self.initialised = True
                return x * 2
            return x

    return Initialised(), cross_entropy


@trap(r"not the same every time")
def a_model_that_is_switched_over() -> Made:
    model = nn.Sequential(nn.Dropout(0.5), nn.Linear(8, 3))

    def objective(model: nn.Module, batch: Batch) -> Tensor:
        loss = cross_entropy(model, batch)
        model.eval()
        return loss

    return model, objective


@trap(r"calls\[0\] changes")
def a_hook_that_counts() -> Made:
    model, calls = nn.Linear(8, 3), [0]

    def hook(_module: nn.Module, _inputs: object, output: Tensor) -> Tensor:
        calls[0] += 1
        return output * calls[0]

    model.register_forward_hook(hook)
    return model, cross_entropy


@trap(r"calls\[0\] changes")
def a_gradient_that_counts() -> Made:
    calls = [0]

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(_ctx: object, x: Tensor) -> Tensor:
            return x.clone()

        @staticmethod
        def backward(_ctx: object, gradient: Tensor) -> Tensor:
            calls[0] += 1
            return gradient * calls[0]

    def objective(model: nn.Module, batch: Batch) -> Tensor:
        return F.cross_entropy(Scaled.apply(model(batch["x"])), batch["y"])  # type: ignore[no-untyped-call]

    return nn.Linear(8, 3), objective


@trap(r"computes loss, gradient of out\.weight from what an earlier step has kept")
def a_tensor_of_the_first_step() -> Made:
    class Anchored(Around):
        """Stays near the weights of its first step."""

        anchor: Tensor | None = None

        def before(self, x: Tensor) -> Tensor:
            if self.anchor is None:
                self.anchor = self.out.weight.detach().clone()
            return x

    def objective(model: nn.Module, batch: Batch) -> Tensor:
        loss = cross_entropy(model, batch)
        return loss + 0.01 * (model.out.weight - model.anchor).square().sum()  # type: ignore[union-attr, operator]

    return Anchored(), objective


@trap(r"from what an earlier step has kept")
def a_flag_beside_a_tensor() -> Made:
    class Begun(Around):
        """Scales its input a little from the second step on, and keeps the last input."""

        begun = False
        last: Tensor | None = None

        def before(self, x: Tensor) -> Tensor:
            y = x * 1.0001 if self.begun else x
            self.begun, self.last = True, x
            return y

    return Begun(), cross_entropy
