"""What `capture` refuses of the optimiser, its scheduler and the limits of gradients. Each raises `CaptureError`."""

from __future__ import annotations

import inspect
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from protocol.capture.errors import CaptureError, Problem, raise_any

REFUSED_OPTIONS = {
    "maximize": "minimise the negative: return -loss from the objective, and leave maximize at its default",
    "dampening": "leave dampening at its default; scale the rate and the momentum instead",
    "differentiable": "leave differentiable at its default; nobody takes gradients through the update",
}
"""Options that would change what a step computes. `foreach`, `fused` and `capturable` only say how torch runs it."""


def require_optimizer(optimizer: Any) -> None:
    """Refuse what is no optimiser of torch, such as None or a list of several."""
    if not isinstance(optimizer, Optimizer):
        what = f"the optimiser is {'None' if optimizer is None else f'of type {type(optimizer).__name__}'}"
        remedy = "pass one torch.optim.SGD, Adam or AdamW, built on the model's parameters"
        raise CaptureError([Problem(what, remedy)])


def require_supported(optimizer: Optimizer, supported: Collection[type[Optimizer]]) -> None:
    """Refuse an optimiser of another type, subclasses included, and options that the update rules do not follow."""
    kind = type(optimizer).__name__
    if type(optimizer) not in supported:
        names = ", ".join(sorted(each.__name__ for each in supported))
        raise CaptureError([Problem(f"optimiser {kind} is not supported", f"use one of: {names}")])
    step = vars(optimizer).get("step")
    if step is not None and not hasattr(step, "_wrapped_by_lr_sched"):
        remedy = "leave it as torch has it; an update is what the optimiser's own options say"
        raise CaptureError([Problem(f"the method step of this {kind} was replaced", remedy)])
    refused = {
        Problem(f"{kind} with {key}={group[key]}", remedy): None
        for group in optimizer.param_groups
        for key, remedy in REFUSED_OPTIONS.items()
        if group.get(key)
    }
    raise_any(refused)


def require_limits(**limits: float | None) -> None:
    """Refuse a limit that is not positive and finite; None is no limit."""
    raise_any(
        Problem(f"{name}={limit}", "give a positive, finite limit, or None for no clipping")
        for name, limit in limits.items()
        if limit is not None and not (isinstance(limit, int | float) and 0 < limit < math.inf)
    )


def require_same_parameters(
    parameters: Mapping[str, nn.Parameter], reached: Collection[str], optimizer: Optimizer
) -> None:
    """Refuse one of the parameters `reached` that is in no group, and a tensor in a group that is no parameter."""
    held = {id(p) for group in optimizer.param_groups for p in group["params"] if p.requires_grad}
    problems = [
        Problem(f"the optimiser does not hold parameter {name}", "freeze it, or pass it to the optimiser")
        for name in reached
        if id(parameters[name]) not in held
    ]
    if held - {id(p) for p in parameters.values()}:
        remedy = "build it on this model's parameters, or make the tensor a parameter of the model"
        problems.append(Problem("the optimiser holds a tensor that is no parameter of the model", remedy))
    raise_any(problems)


def require_new(optimizer: Optimizer) -> None:
    """Refuse an optimiser that has stepped, since its state starts at zero in the program, and hooks on its steps."""
    problems = []
    if any(optimizer.state.values()):
        what = "the optimiser has stepped already: what it keeps would be lost"
        problems.append(Problem(what, "build a new optimiser on the model's parameters"))
    if optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks:
        remedy = "remove them; an update is what the optimiser's own options say"
        problems.append(Problem("the optimiser has hooks on its steps", remedy))
    raise_any(problems)


def require_own_scheduler(scheduler: LRScheduler, optimizer: Optimizer) -> None:
    """Refuse a scheduler of another optimiser, and one whose `step` asks for an argument, such as a metric."""
    if not isinstance(scheduler, LRScheduler) or scheduler.optimizer is not optimizer:
        what = "the scheduler does not belong to the optimiser"
        raise CaptureError([Problem(what, "build it on this optimiser")])
    try:
        inspect.signature(scheduler.step).bind()
    except TypeError:
        remedy = "use a scheduler that depends on the step alone; the rates become a table in the task"
        raise CaptureError(
            [Problem(f"{type(scheduler).__name__} needs more than the step", remedy)]
        ) from None


def require_all_steps(scheduler: LRScheduler, steps: int) -> None:
    """Refuse a schedule of a fixed length that ends before the last of `steps`, as a one-cycle schedule may."""
    length = getattr(scheduler, "total_steps", steps)
    if length < steps:
        what = f"{type(scheduler).__name__} has {length} steps, the task {steps}"
        raise CaptureError([Problem(what, f"build it with total_steps={steps}")])


def require_only_rates_change(scheduler: LRScheduler, before: Sequence[Mapping[str, Any]]) -> None:
    """Refuse a scheduler that changed another option of a group, since the others are fixed in the program.

    One-cycle and cyclic schedules cycle the momentum unless told not to.
    """
    changed = {
        key
        for group, options in zip(scheduler.optimizer.param_groups, before)
        for key in options
        if key != "lr" and group[key] != options[key]
    }
    if changed:
        what = f"{type(scheduler).__name__} changes {', '.join(sorted(changed))} while it runs"
        remedy = "only rates may change with the step: pass cycle_momentum=False to the scheduler"
        raise CaptureError([Problem(what, remedy)])


def require_rates(scheduler: LRScheduler, rates: Sequence[float], step: int) -> None:
    """Refuse a rate that is no finite number; `step` counts from 0."""
    if not all(map(math.isfinite, rates)):
        what = f"{type(scheduler).__name__} gives step {step} the learning rate {', '.join(map(str, rates))}"
        raise CaptureError([Problem(what, "give every step a finite rate")])


def ends_early(scheduler: LRScheduler, done: int, steps: int, error: Exception, traceback: str) -> Problem:
    """The scheduler, or a function of the submitter's that it calls, raises an error after `done` of `steps` steps."""
    what = f"{type(scheduler).__name__} raises {type(error).__name__} after {done} of {steps} steps"
    remedy = f"let it give a rate for each of the {steps} steps"
    return Problem(what, remedy, traceback=traceback, cause=error)
