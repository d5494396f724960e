"""Learning rates as data: one f32 per step and parameter group, read off torch's own scheduler by running it.

So no party computes a cosine. After the last entry the rate is zero, because `gather` reads zero there.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from protocol.capture.errors import CaptureError, Problem


def learning_rates(optimizer: Optimizer, scheduler: LRScheduler | None, steps: int) -> list[Tensor]:
    """f32 [steps] for each parameter group of `optimizer`.

    Runs `scheduler` forward over all steps and puts it and the optimiser's rates back. Parameters are not touched.
    Raises `CaptureError` for a scheduler of another optimiser, or one that needs a metric.
    """
    if scheduler is None:
        return [
            torch.full((steps,), float(group["lr"]), dtype=torch.float32) for group in optimizer.param_groups
        ]
    if not isinstance(scheduler, LRScheduler) or scheduler.optimizer is not optimizer:
        raise CaptureError(
            [Problem("the scheduler does not belong to the optimiser", "build it on this optimiser")]
        )
    before = scheduler.state_dict()
    options = [{k: v for k, v in group.items() if k != "params"} for group in optimizer.param_groups]
    table: list[list[float]] = [[] for _ in optimizer.param_groups]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns that the scheduler steps without its optimiser
            for _ in range(steps):
                for rates, group in zip(table, optimizer.param_groups):
                    rates.append(float(group["lr"]))
                scheduler.step()
                _require_only_rates_change(scheduler, options)
    except TypeError as error:
        remedy = "use a scheduler that depends on the step alone; the rates become a table in the task"
        raise CaptureError(
            [Problem(f"{type(scheduler).__name__} needs more than the step", remedy)]
        ) from error
    finally:
        scheduler.load_state_dict(before)
        for group, option in zip(optimizer.param_groups, options):
            group.update(option)
    return [torch.tensor(rates, dtype=torch.float32) for rates in table]


def _require_only_rates_change(scheduler: LRScheduler, before: Sequence[Mapping[str, Any]]) -> None:
    """Other options are part of the program. One-cycle and cyclic schedules cycle the momentum unless told not to."""
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
