"""Finds the trainings that each device already has, to decide whether it can take one more."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from protocol.chain.views import TaskStatus
from protocol.tasks.offers import Figures, Training, seconds_needed
from solver.context import Context


def by_device(
    context: Context, program: bytes, beside: Sequence[int], figures: Figures
) -> Iterator[tuple[str, Figures]]:
    """Each device, with the bidder's figures for training this program there. They include the trainings of
    those tasks in `beside` that are placed on the device. The device with the least work comes first.
    Memory is considered only once the program's bundle was read, because that needs torch. Raises
    ChainError.
    """
    needs = context.places.needs(program)
    places = context.places
    trained: dict[str, dict[int, Training]] = {device: {} for device in places.devices}
    for task in beside:
        trained[places.of(task)][task] = _training(context, task, figures)
    for device, trainings in sorted(
        trained.items(), key=lambda item: sum(one.seconds for one in item[1].values())
    ):
        programs = [context.terms(task).program_id for task in trainings]
        room = math.inf if needs is None else places.room(device, programs)
        named = {f"task {task}": training for task, training in trainings.items()}
        yield device, replace(figures, trainings=named, memory=room, needs=needs or 0)


def _training(context: Context, task: int, figures: Figures) -> Training:
    """The rest of a task's training. If it has not begun, it is assumed to begin now."""
    view, terms = context.client.market.task(task), context.terms(task)
    kept = max(0, context.database.kept(task) - 1) / terms.segments
    begun = view.status is TaskStatus.TRAINING
    left = view.train_until - context.client.now() if begun else terms.training_period
    return Training(seconds_needed(terms, figures) * (1 - kept), left)
