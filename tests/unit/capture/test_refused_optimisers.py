"""Custom optimisers whose step is not a function of their state and the gradients are refused."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Container, Iterable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import LBFGS, Adam, Optimizer
from torch.optim.lr_scheduler import LambdaLR

from protocol.capture import CaptureError
from tests.unit.capture.steps import DATASET, captured
from tests.unit.capture.test_optimisers import Gains, squares
from tests.unit.capture.test_traced_optimisers import Lion, OneNumber, Own


class Counting(Lion):
    """Counts its steps in a parameter group."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            group["steps"] = group.get("steps", 0) + 1
        super().step()


class Global(Own):
    """Counts its steps in the state, under a key that is not a parameter."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        shared: dict[Any, Any] = self.state
        shared["steps"] = shared.get("steps", 0) + 1
        for p in self.param_groups[0]["params"]:
            p.sub_(p.grad, alpha=self.param_groups[0]["lr"] / shared["steps"])


class Attribute(Own):
    """Counts its steps in an attribute and appends each count to a list."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        self.count += 1
        self.log.append(self.count)
        for p in self.param_groups[0]["params"]:
            p.sub_(p.grad, alpha=0.01 if self.count < 9 else 0.1)


class Halving(Own):
    """Halves its rate after every step."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for p in self.param_groups[0]["params"]:
            p.sub_(p.grad, alpha=self.param_groups[0]["lr"])
        self.param_groups[0]["lr"] *= 0.5


class ByItsList(Own):
    """Updates the parameters in its attribute `mine`, instead of those in its parameter groups."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for p in self.mine:
            if p.grad is not None:
                p.sub_(p.grad, alpha=self.param_groups[0]["lr"])


class Deciding(Lion):
    """Updates differently from the third step on."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                state["step"] = state.get("step", 0) + 1
                p.sub_(p.grad, alpha=group["lr"] if state["step"] < 3 else 0.0)


class Hiding(Lion):
    """Counts its steps in a class attribute."""

    count = 0

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        type(self).count += 1
        for group in self.param_groups:
            for p in group["params"]:
                p.sub_(p.grad, alpha=group["lr"] / type(self).count)


def test_updates_are_compared_though_the_first_rate_is_zero() -> None:
    model = Gains()
    optimizer = Hiding(model.parameters(), lr=0.1)
    scheduler = LambdaLR(optimizer, lambda step: step / 4)
    assert optimizer.param_groups[0]["lr"] == 0
    with pytest.raises(CaptureError, match="otherwise than it does in torch"):
        captured(model, squares, optimizer, scheduler=scheduler)
    assert optimizer.param_groups[0]["lr"] == 0


class InOneGroup(Optimizer):
    """Changes an option of one of its two groups."""

    def __init__(self, params: Iterable[nn.Parameter], changed: int) -> None:
        first, *others = params
        super().__init__([{"params": [first]}, {"params": others}], {"lr": 0.01, "beta": 1.0})
        self.changed = changed

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in group["params"]:
                p.sub_(p.grad, alpha=group["lr"] if group["beta"] > 0.5 else 0.0)
        self.param_groups[self.changed]["beta"] *= 0.9


class Swapping(Own):
    """Swaps the elements of a tensor in an attribute, so that their sum stays the same."""

    def __init__(self, params: Iterable[nn.Parameter]) -> None:
        super().__init__(params)
        self.weights = torch.tensor([2.0, 1.0])

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        self.weights.copy_(self.weights.flip(0))
        for p in self.param_groups[0]["params"]:
            p.sub_(p.grad, alpha=self.param_groups[0]["lr"])


class Late(Own):
    """Counts from its second step on, in its state, and decides by the count."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for p in self.param_groups[0]["params"]:
            state = self.state[p]
            if "mean" in state:
                late = state.setdefault("late", torch.zeros(()))
                late += 1
                p.mul_(torch.where(late > 8, 0.5, 1.0))
            mean = state.setdefault("mean", torch.zeros_like(p))
            p.sub_(mean.lerp_(p.grad, 0.1), alpha=self.param_groups[0]["lr"])


class Warm(Own):
    """Removes from its state in the second step what it stored in the first."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for p in self.param_groups[0]["params"]:
            if "warm" in self.state[p]:
                self.state[p].pop("warm")
            else:
                self.state[p]["warm"] = torch.ones(())
            p.sub_(p.grad, alpha=self.param_groups[0]["lr"])


class InAContainer(Own):
    """Keeps a container in the state of each parameter; subclasses define which."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for p in self.param_groups[0]["params"]:
            p.sub_(p.grad, alpha=0.01 if self.steps(p) <= 6 else 0.001)

    def steps(self, p: nn.Parameter) -> int:
        """The number of steps of a parameter."""
        raise NotImplementedError


class ListState(InAContainer):
    """Counts its steps in a list."""

    def steps(self, p: nn.Parameter) -> int:
        held: list[int] = self.state[p].setdefault("steps", [0])
        held[0] += 1
        return held[0]


class DictState(InAContainer):
    """Counts its steps in a dict."""

    def steps(self, p: nn.Parameter) -> int:
        held: dict[str, int] = self.state[p].setdefault("info", {"steps": 0})
        held["steps"] += 1
        return held["steps"]


class History(InAContainer):
    """Keeps all gradients."""

    def steps(self, p: nn.Parameter) -> int:
        held: list[Tensor] = self.state[p].setdefault("history", [])
        assert p.grad is not None
        held.append(p.grad.clone())
        return len(held)


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (Counting, "changes the option 'steps' of a group"),
        (lambda p: InOneGroup(p, 0), "changes the option 'beta' of a group"),
        (lambda p: InOneGroup(p, 1), "changes the option 'beta' of a group"),
        (Swapping, "changes the attribute weights in a step"),
        (Late, "has no late of gain before its second step"),
        (Warm, "removes warm of gain in its second step"),
        (ListState, "changes steps of gain, a list,"),
        (DictState, "changes info of gain, a dict,"),
        (History, "changes history of gain, a list,"),
        (Deciding, "decides something by what a tensor"),
        (Hiding, "otherwise than it does in torch"),
        (Global, "changes its state under 'steps'"),
        (Attribute, "changes the attribute count"),
        (Halving, "changes the option 'lr' of a group"),
        (ByItsList, "otherwise than it does in torch"),
        (LBFGS, "raises TypeError"),
        (lambda p: Adam(p, differentiable=True), "differentiable=True"),
    ],
)
def test_what_is_no_function_of_the_state_is_refused(make: Callable[..., Optimizer], what: str) -> None:
    model = Gains()
    optimizer = make(model.parameters())
    squares(model, DATASET).backward()
    before = [(p.detach().clone(), p.grad) for p in model.parameters()]
    with pytest.raises(CaptureError, match=what) as caught:
        captured(model, squares, optimizer)
    for p, (elements, gradient) in zip(model.parameters(), before, strict=True):
        assert torch.equal(p, elements)
        assert p.grad is gradient
    assert not getattr(optimizer, "log", [])
    assert all(problem.remedy for problem in caught.value.problems)


class Elsewhere(Own):
    """Counts its steps outside its state, up to a limit that no trial reaches; subclasses define where."""

    def __init__(self, params: Iterable[nn.Parameter]) -> None:
        super().__init__(params)
        self.begin()

    def begin(self) -> None:
        """Prepare the count."""

    def counted(self) -> int:
        """Count a step, and return the count."""
        raise NotImplementedError

    def now(self) -> object:
        """The count."""
        raise NotImplementedError

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        rate = 0.01 if self.counted() <= 100 else 0.001
        for p in self.param_groups[0]["params"]:
            p.sub_(p.grad, alpha=rate)


class InTorchsName(Elsewhere):
    """Counts in `_step_count`, which is also the name of an attribute of torch's schedulers."""

    def begin(self) -> None:
        self._step_count = 0

    def counted(self) -> int:
        self._step_count += 1
        return self._step_count

    def now(self) -> object:
        return self._step_count


class InDefaults(Elsewhere):
    """Counts in the defaults of its options."""

    def begin(self) -> None:
        self.defaults["steps"] = 0

    def counted(self) -> int:
        self.defaults["steps"] += 1
        return int(self.defaults["steps"])

    def now(self) -> object:
        return self.defaults["steps"]


class InAnObject(Elsewhere):
    """Counts in an attribute of an object that it holds."""

    def begin(self) -> None:
        self.held = SimpleNamespace(steps=0)

    def counted(self) -> int:
        self.held.steps += 1
        return int(self.held.steps)

    def now(self) -> object:
        return self.held.steps


STEPS_SO_FAR = 0


class InAGlobal(Elsewhere):
    """Counts in a global of its module."""

    def counted(self) -> int:
        global STEPS_SO_FAR
        STEPS_SO_FAR += 1
        return STEPS_SO_FAR

    def now(self) -> object:
        return STEPS_SO_FAR


def counter() -> Callable[[], int]:
    """A function that counts its calls in a closure."""
    count = 0

    def counted() -> int:
        nonlocal count
        count += 1
        return count

    return counted


class InAClosure(Elsewhere):
    """Counts in the closure of a function."""

    def begin(self) -> None:
        self.call = counter()

    def counted(self) -> int:
        return self.call()

    def now(self) -> object:
        return (self.call.__closure__ or ())[0].cell_contents


class InAnIterator(Elsewhere):
    """Counts by an iterator."""

    def begin(self) -> None:
        self.numbers = itertools.count()

    def counted(self) -> int:
        return next(self.numbers)

    def now(self) -> object:
        return None  # an iterator cannot be put back


class InAParameter(Elsewhere):
    """Counts in an attribute of a parameter."""

    def counted(self) -> int:
        p = self.param_groups[0]["params"][0]
        p.steps = getattr(p, "steps", 0) + 1
        return int(p.steps)

    def now(self) -> object:
        return getattr(self.param_groups[0]["params"][0], "steps", 0)


class InItsClass(Elsewhere):
    """Counts in an attribute of its class."""

    steps = 0

    def counted(self) -> int:
        type(self).steps += 1
        return self.steps

    def now(self) -> object:
        return self.steps


@pytest.mark.parametrize(
    "kind",
    [
        InTorchsName,
        InDefaults,
        InAnObject,
        InAGlobal,
        InAClosure,
        InAnIterator,
        InAParameter,
        InItsClass,
    ],
)
def test_a_count_outside_the_state_is_refused_and_restored(kind: type[Elsewhere]) -> None:
    model = Gains()
    optimizer = kind(model.parameters())
    before = optimizer.now(), [dict(vars(p)) for p in model.parameters()]
    with pytest.raises(CaptureError, match=f"{kind.__name__} changes"):
        captured(model, squares, optimizer)
    assert (optimizer.now(), [dict(vars(p)) for p in model.parameters()]) == before


class Restarting(Own):
    """Restarts its momentum at the steps in `milestones`."""

    milestones: Container[int] = ()

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for p in self.param_groups[0]["params"]:
            state = self.state[p]
            state["steps"] = state.get("steps", 0) + 1
            mean = state.setdefault("mean", torch.zeros_like(p))
            if self.is_restart(state["steps"]):
                mean.zero_()
            mean.lerp_(p.grad, 0.1)
            p.sub_(mean, alpha=self.param_groups[0]["lr"])

    def is_restart(self, step: int) -> bool:
        """Whether the momentum starts again in this step."""
        return step in self.milestones


class Looking(Restarting):
    """Looks up how often its momentum restarts at a step."""

    def is_restart(self, step: int) -> bool:
        return bool(self.milestones[step])  # type: ignore[index]


@pytest.mark.parametrize(
    ("kind", "milestones"),
    [
        (Restarting, frozenset({6, 12})),
        (Restarting, {6: True, 12: True}),
        (Looking, Counter([6, 12])),
    ],
    ids=["set", "dict", "counter"],
)
def test_a_count_that_is_looked_up_is_refused(kind: type[Restarting], milestones: Container[int]) -> None:
    model = OneNumber()
    optimizer = kind(model.parameters())
    optimizer.milestones = milestones
    usual = Tensor.__hash__
    with pytest.raises(CaptureError, match="decides something by what a tensor") as caught:
        captured(model, squares, optimizer)
    assert Tensor.__hash__ is usual
    (problem,) = caught.value.problems
    assert "milestones" in problem.source
