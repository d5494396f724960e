"""Learning rates as data: one f32 per step and parameter group, obtained by running torch's own scheduler.

So a program need not compute the schedule, such as a cosine. After the last entry the rate is zero, because
`gather` reads zero there.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from protocol.capture.errors import CaptureError
from protocol.capture.optimisers.checks import (
    ends_early,
    require_all_steps,
    require_only_rates_change,
    require_own_scheduler,
    require_rates,
)
from protocol.capture.tracing.sources import traceback_of


def learning_rates(optimizer: Optimizer, scheduler: LRScheduler | None, steps: int) -> list[Tensor]:
    """f32 [steps] for each parameter group of `optimizer`; without a scheduler, the group's rate in every
    step.

    Runs `scheduler` over all steps, then restores it and the optimiser's options. Parameters are not touched. Raises
    `CaptureError` for a scheduler of another optimiser, and for one that needs a metric, changes other options, ends
    before the last step, or yields a rate that is not finite.
    """
    if scheduler is None:
        return [torch.full((steps,), rate_of(group), dtype=torch.float32) for group in optimizer.param_groups]
    require_own_scheduler(scheduler, optimizer)
    require_all_steps(scheduler, steps)
    before = scheduler.state_dict()
    own = [{k: v for k, v in group.items() if k != "params"} for group in optimizer.param_groups]
    # torch's schedulers write into a rate that is a tensor.
    options = [{k: v.clone() if isinstance(v, Tensor) else v for k, v in held.items()} for held in own]
    table: list[list[float]] = [[] for _ in optimizer.param_groups]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns that the scheduler steps without its optimiser
            for step in range(steps):
                if step:
                    scheduler.step()
                    require_only_rates_change(scheduler, options)
                for rates, group in zip(table, optimizer.param_groups):
                    rates.append(rate_of(group))
                require_rates(scheduler, [rates[-1] for rates in table], step)
    except CaptureError:
        raise
    except Exception as error:
        done = len(table[0])
        raise CaptureError([ends_early(scheduler, done, steps, error, traceback_of(error))]) from error
    finally:
        scheduler.load_state_dict(before)
        for group, held, option in zip(optimizer.param_groups, own, options):
            group.update(held)
            for key, value in held.items():
                if isinstance(value, Tensor):
                    value.copy_(option[key])
    return [torch.tensor(rates, dtype=torch.float32) for rates in table]


def rate_of(group: Mapping[str, Any]) -> float:
    """The learning rate of a group; 0 if the optimiser has no rate, or chooses the rate itself."""
    return float(group["lr"]) if group.get("lr") is not None else 0.0


@contextmanager
def as_in_another_step(optimizer: Any, scheduler: Any) -> Iterator[None]:
    """Inside the context, change the learning rates, the scheduler's step counts and the optimiser's state. A
    trace then differs if the code reads them.
    """
    state = optimizer.state if isinstance(optimizer, Optimizer) else {}
    tensors = dict(state)
    groups = optimizer.param_groups if isinstance(optimizer, Optimizer) else []
    rates = [group.get("lr") for group in groups]
    counting = [each for each in _with_parts(scheduler) if hasattr(each, "last_epoch")]
    epochs = [each.last_epoch for each in counting]
    try:
        for group, rate in zip(groups, rates):
            if rate is not None:
                group["lr"] = rate * 0.5 + 1e-3
        for each, epoch in zip(counting, epochs):
            each.last_epoch = epoch + 1
        state.clear()
        state.update({p: {"step": 1} for group in groups for p in group["params"] if p not in tensors})
        yield
    finally:
        state.clear()
        state.update(tensors)
        for group, rate in zip(groups, rates):
            if rate is not None:
                group["lr"] = rate
        for each, epoch in zip(counting, epochs):
            each.last_epoch = epoch


def _with_parts(scheduler: Any) -> Iterator[LRScheduler]:
    """A scheduler and those that it runs, as SequentialLR and ChainedScheduler do; the latter has no count of steps."""
    if isinstance(scheduler, LRScheduler):
        yield scheduler
        for part in getattr(scheduler, "_schedulers", ()):
            yield from _with_parts(part)
