"""Learning rates as data: one f32 per step and parameter group, read from torch's own scheduler by running it.

No party computes a cosine this way. After the last entry the rate is zero, because `gather` reads zero there.
"""

from __future__ import annotations

import warnings

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from protocol.capture.errors import CaptureError
from protocol.capture.optimisers.checks import (
    needs_more_than_the_step,
    require_only_rates_change,
    require_own_scheduler,
)


def learning_rates(optimizer: Optimizer, scheduler: LRScheduler | None, steps: int) -> list[Tensor]:
    """f32 [steps] for each parameter group of `optimizer`.

    Runs `scheduler` over all steps, then restores it and the optimiser's options. Parameters are not touched. Raises
    `CaptureError` for a scheduler of another optimiser, one that needs a metric, and one that changes other options.
    """
    if scheduler is None:
        return [
            torch.full((steps,), float(group["lr"]), dtype=torch.float32) for group in optimizer.param_groups
        ]
    require_own_scheduler(scheduler, optimizer)
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
                require_only_rates_change(scheduler, options)
    except TypeError as error:
        raise CaptureError([needs_more_than_the_step(scheduler)]) from error
    finally:
        scheduler.load_state_dict(before)
        for group, option in zip(optimizer.param_groups, options):
            group.update(option)
    return [torch.tensor(rates, dtype=torch.float32) for rates in table]
