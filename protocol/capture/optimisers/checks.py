"""Refusals of the optimiser, its scheduler and the limits for clipping gradients. Each raises
`CaptureError` or returns a `Problem`.
"""

from __future__ import annotations

import inspect
import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from torch import nn
from torch.optim import Optimizer
from torch.optim import optimizer as hooks
from torch.optim.lr_scheduler import LRScheduler

from protocol.capture.errors import CaptureError, Problem, raise_any
from protocol.capture.inputs.python_state import Change
from protocol.capture.optimisers.phases import Phase
from protocol.capture.tracing.sources import source_of_error, traceback_of

NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
"""The pattern of a phase's name."""
LATER: Final = (
    "only rates may change with the step: choose in the objective, by torch.where on a buffer of the model that counts "
    "steps, or give the later part a phase of capture_phases that acts from its first step on"
)
"""The remedy for a scheduler that changes more than rates."""
CYCLED: Final = {"momentum", "betas"}
"""The options that torch's one-cycle and cyclic schedules change besides the rate."""


def require_phases(phases: Sequence[Phase], steps: int) -> None:
    """Refuse an empty list of phases, names that occur twice or are unusable for metrics, and phases that act
    in none of the `steps` steps. `every` must be a whole number of at least 1, and `first` a whole number of
    at least 0.
    """
    if not phases:
        raise CaptureError([Problem("there are no phases", "pass at least one")])
    names = [phase.name for phase in phases]
    problems = [
        Problem(f"a phase named {name!r}", "name each otherwise, by a letter and letters, digits or _")
        for place, name in enumerate(names)
        if not NAME.fullmatch(name) or name in names[:place]
    ]
    problems += [
        Problem(
            f"phase {phase.name} acts every {phase.every!r} steps from step {phase.first!r} on, of {steps}",
            "give whole numbers: every of at least 1, and first from 0 to a step of the task",
        )
        for phase in phases
        if not all(type(x) is int for x in (phase.every, phase.first))
        or phase.every < 1
        or not 0 <= phase.first < steps
    ]
    raise_any(problems)


def require_optimizer(optimizer: Any) -> None:
    """Refuse anything but a single torch optimiser. For example, None and a list of several optimisers are
    refused.
    """
    if not isinstance(optimizer, Optimizer):
        what = f"the optimiser is {'None' if optimizer is None else f'of type {type(optimizer).__name__}'}"
        remedy = "pass one torch.optim.Optimizer, built on the model's parameters"
        raise CaptureError([Problem(what, remedy)])


def _remedy(optimizer: Optimizer, usual: str) -> str:
    """The remedy for an optimiser whose step cannot be traced. It is `usual`, unless the optimiser wraps
    another optimiser. Then the remedy is to write the rules of both in one `step`.
    """
    held = [type(x).__name__ for x in vars(optimizer).values() if isinstance(x, Optimizer)]
    if not held:
        return usual
    return (
        f"{type(optimizer).__name__} wraps another optimiser, {held[0]}, and the step of one optimiser is traced, on "
        "its own groups and state: write both rules in one step(), with all that they keep in the state of each "
        "parameter, and torch.where for what is done every few steps"
    )


def outside_state(optimizer: Optimizer, what: str) -> Problem:
    """The refusal for an optimiser whose step changes `what`, which is not in the state of a parameter."""
    remedy = _remedy(optimizer, "keep it in the state of each parameter, as a tensor or a number")
    return Problem(f"{type(optimizer).__name__} changes {what} in a step", remedy)


def stored_late(optimizer: Optimizer, key: str, name: str) -> Problem:
    """The refusal for an optimiser that stores `key` of parameter `name` in its second step, but not in its
    first.
    """
    remedy = _remedy(optimizer, "store it in the first step, with the value with which the second begins")
    return Problem(f"{type(optimizer).__name__} has no {key} of {name} before its second step", remedy)


def removed_early(optimizer: Optimizer, key: str, name: str) -> Problem:
    """The refusal for an optimiser that removes `key` of parameter `name` in its second step."""
    remedy = _remedy(optimizer, "keep it: what an optimiser stores for a parameter must stay")
    return Problem(f"{type(optimizer).__name__} removes {key} of {name} in its second step", remedy)


def draws(optimizer: Optimizer, operation: str, source: str) -> Problem:
    """The refusal for an optimiser whose step draws random numbers by `operation` at line `source`."""
    remedy = (
        "an update has no random numbers, an objective has: add noise to the gradients there, as (p * "
        "torch.randn_like(p)).sum() times a factor in the loss, and use an optimiser that draws nothing"
    )
    return Problem(f"{type(optimizer).__name__} draws random numbers, by {operation}", remedy, source)


def makes_a_tensor(optimizer: Optimizer, source: str) -> Problem:
    """The refusal for an optimiser whose step makes a tensor of Python numbers at line `source`."""
    what = f"{type(optimizer).__name__} makes a tensor of Python numbers, as torch.tensor(0.1) does"
    remedy = (
        "compute with the numbers themselves, or with torch.full; for a count, begin with torch.zeros(())"
    )
    return Problem(what, remedy, source)


def step_raises(optimizer: Optimizer, error: Exception) -> Problem:
    """The refusal for an optimiser whose step raises an error when it runs without a closure, on dense gradients."""
    usual = "use one whose step() takes dense gradients alone, and asks for no second loss"
    remedy = _remedy(optimizer, usual)
    what = f"the step of this {type(optimizer).__name__} raises {type(error).__name__}: {error}"
    return Problem(what, remedy, source_of_error(error), traceback_of(error), error)


def reads_numbers(optimizer: Optimizer, source: str) -> Problem:
    """The refusal for an optimiser whose code at line `source` reads the value of a tensor, of a rate or of a
    step count.
    """
    what = f"{type(optimizer).__name__} decides something by what a tensor, its rate or its count of steps is"
    usual = "compute with tensors: torch.where for `if`, a power of one half for math.sqrt"
    return Problem(what, _remedy(optimizer, usual), source)


def reads_the_schedule(source: str) -> Problem:
    """The refusal for an objective that, at line `source`, reads a learning rate or step count of the
    optimiser or scheduler.
    """
    what = "the step reads the learning rate, or the count of steps, of its optimiser or scheduler"
    remedy = (
        "count the steps in a buffer of the model and choose by torch.where, or give the later part a phase of "
        "capture_phases that acts from its first step on"
    )
    return Problem(what, remedy, source)


def computes_otherwise(optimizer: Optimizer, name: str, error: float) -> Problem:
    """The refusal for an optimiser whose traced update of parameter `name` differs from torch's.

    `error` is relative to how far the parameter moves in a few steps.
    """
    what = (
        f"{type(optimizer).__name__}, traced, moves {name} otherwise than it does in torch: {error:.2g} off"
    )
    usual = "let every step be the same function of parameters, gradients, rates and state"
    return Problem(what, _remedy(optimizer, usual))


def require_limits(**limits: float | None) -> None:
    """Refuse a limit that is not positive and finite; None means no limit."""
    raise_any(
        Problem(f"{name}={limit}", "give a positive, finite limit, or None for no clipping")
        for name, limit in limits.items()
        if limit is not None and not (isinstance(limit, int | float) and 0 < limit < math.inf)
    )


def require_same_parameters(
    parameters: Mapping[str, nn.Parameter], reached: Collection[str], optimizer: Optimizer
) -> None:
    """Refuse a parameter among `reached` that is in no group, a parameter that is listed twice, and a group
    that holds a tensor other than `parameters`. Tensors that do not require gradients are ignored.
    """
    listed = Counter(id(p) for group in optimizer.param_groups for p in group["params"] if p.requires_grad)
    held = listed.keys()
    problems = [
        Problem(f"the optimiser does not hold parameter {name}", "freeze it, or pass it to the optimiser")
        for name in reached
        if id(parameters[name]) not in held
    ]
    twice = "torch would update it that many times in a step: list it once, as model.parameters() does"
    problems += [
        Problem(f"the optimiser holds parameter {name} {listed[id(p)]} times", twice)
        for name, p in parameters.items()
        if listed[id(p)] > 1
    ]
    if held - {id(p) for p in parameters.values()}:
        remedy = "build it on this model's parameters, or make the tensor a parameter of the model"
        problems.append(Problem("the optimiser holds a tensor that is not a parameter of the model", remedy))
    raise_any(problems)


def require_still_frozen(model: nn.Module, thawed: Collection[str], optimizer: Optimizer) -> None:
    """Refuse a step that sets `requires_grad` of a frozen parameter that the optimiser holds, because torch
    would train the parameter from then on. `thawed` has the places in the model of all frozen parameters for
    which the step sets `requires_grad`.
    """
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    own = dict(model.named_parameters(remove_duplicate=False))
    remedy = "set it before the capture, or give the parameter a phase of capture_phases"
    raise_any(
        Problem(f"the step sets requires_grad of parameter {name}", remedy)
        for name in thawed
        if id(own[name]) in held
    )


def require_new(optimizer: Optimizer) -> None:
    """Refuse an optimiser that has already stepped, since the program begins with the optimiser's first step.

    Also refuse the option `differentiable`, and hooks on the steps of this optimiser or of all optimisers.
    """
    problems = []
    # Some optimisers create zeros and a step count of 0 when they are built.
    if any(kept and kept.get("step", 1) > 0 for kept in optimizer.state.values()):
        what = "the optimiser has stepped already: what it keeps would be lost"
        problems.append(Problem(what, "build a new optimiser on the model's parameters"))
    if any(group.get("differentiable") for group in optimizer.param_groups):
        remedy = "leave differentiable at its default; nobody takes gradients through the update"
        problems.append(Problem(f"{type(optimizer).__name__} with differentiable=True", remedy))
    if optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks:
        remedy = "remove them; an update is what the optimiser's own options say"
        problems.append(Problem("the optimiser has hooks on its steps", remedy))
    every = (hooks._global_optimizer_pre_hooks, hooks._global_optimizer_post_hooks)
    # torch's own profiler counts steps in one of them.
    if any(hook.__module__ != "torch.profiler" for table in every for hook in table.values()):
        remedy = "remove them with the handles that register_optimizer_step_pre_hook and …_post_hook returned"
        problems.append(Problem("there are hooks on the steps of all optimisers", remedy))
    raise_any(problems)


def require_own_scheduler(scheduler: LRScheduler, optimizer: Optimizer) -> None:
    """Refuse a scheduler of another optimiser, and one whose `step` requires an argument, such as a metric."""
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
    """Refuse a schedule of fixed length, such as a one-cycle schedule, if it has fewer than `steps` steps."""
    length = getattr(scheduler, "total_steps", None)
    if isinstance(length, int) and length < steps:
        what = f"{type(scheduler).__name__} has {length} steps, the task {steps}"
        raise CaptureError([Problem(what, f"build it with total_steps={steps}")])


def require_only_rates_change(scheduler: LRScheduler, before: Sequence[Mapping[str, Any]]) -> None:
    """Refuse a scheduler that changed any option of a group except its rate, since only rates vary in a
    program.

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
        remedy = "only rates may change with the step: "
        if changed <= CYCLED:
            remedy += "pass cycle_momentum=False to the scheduler"
        else:
            remedy += "leave it at one value"
        if "weight_decay" in changed:
            remedy += (
                "; SGD and Adam add the decay to the gradients, so without clipping a term of the loss can stand for "
                "it: half the decay times the squares of the parameters, where the model computes the decay from a "
                "buffer that counts steps; with clipping, the decay is added to the clipped gradients; AdamW decays "
                "the parameters apart from the gradients, and so does Adam with decoupled_weight_decay=True; in these "
                "cases no term of the loss does the same"
            )
        raise CaptureError([Problem(what, remedy)])


def require_same_groups(
    scheduler: LRScheduler, before: Sequence[tuple[Mapping[str, Any], Sequence[nn.Parameter]]]
) -> None:
    """Refuse a scheduler that changed the groups of its optimiser or their parameters. `before` has each group,
    with its parameters before the scheduler ran.
    """
    groups = [(id(group), [*map(id, group["params"])]) for group in scheduler.optimizer.param_groups]
    if groups != [(id(group), [*map(id, params)]) for group, params in before]:
        what = f"{type(scheduler).__name__} changes the parameters of the optimiser's groups while it runs"
        raise CaptureError([Problem(what, LATER)])


def changes_more(scheduler: LRScheduler, change: Change) -> Problem:
    """The refusal for a scheduler that, while it runs, changes a value that the step uses."""
    what = f"{type(scheduler).__name__} changes {change.where} from {change.before} to {change.after} while it runs"
    return Problem(what, LATER)


def uses_the_training(scheduler: LRScheduler, what: str, source: str) -> Problem:
    """The refusal for a scheduler that, at line `source`, uses `what`, a value that training changes."""
    remedy = "use a scheduler that depends on the step alone; the rates become a table in the task"
    return Problem(f"{type(scheduler).__name__} uses {what}", remedy, source)


def require_rates(scheduler: LRScheduler, rates: Sequence[float], step: int) -> None:
    """Refuse a rate that is not a finite number; `step` counts from 0."""
    if not all(map(math.isfinite, rates)):
        what = f"{type(scheduler).__name__} gives step {step} the learning rate {', '.join(map(str, rates))}"
        raise CaptureError([Problem(what, "give every step a finite rate")])


def ends_early(scheduler: LRScheduler, done: int, steps: int, error: Exception, traceback: str) -> Problem:
    """The refusal for a scheduler that raises an error after `done` of `steps` steps.

    The error may come from a function of the submitter that the scheduler calls.
    """
    what = f"{type(scheduler).__name__} raises {type(error).__name__} after {done} of {steps} steps"
    remedy = f"let it give a rate for each of the {steps} steps"
    return Problem(what, remedy, traceback=traceback, cause=error)
