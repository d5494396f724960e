"""Learning rates as data: one f32 per step and parameter group, read off torch's own scheduler by running it.

So no party computes a cosine. After the last entry the rate is zero, because `gather` reads zero there.
"""

from __future__ import annotations

import warnings

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from protocol.program.capture.errors import CaptureError, Problem


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
    before, rates_before = scheduler.state_dict(), [group["lr"] for group in optimizer.param_groups]
    table: list[list[float]] = [[] for _ in optimizer.param_groups]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns that the scheduler steps without its optimiser
            for _ in range(steps):
                for rates, group in zip(table, optimizer.param_groups):
                    rates.append(float(group["lr"]))
                scheduler.step()
    except TypeError as error:
        remedy = "use a scheduler that depends on the step alone; the rates become a table in the task"
        raise CaptureError(
            [Problem(f"{type(scheduler).__name__} needs more than the step", remedy)]
        ) from error
    finally:
        scheduler.load_state_dict(before)
        for group, rate in zip(optimizer.param_groups, rates_before):
            group["lr"] = rate
    return [torch.tensor(rates, dtype=torch.float32) for rates in table]
