"""Finds how much work and memory the present tasks take up on each device, and how many memory maps they take
up in the process. This decides whether there is room for one more training.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from protocol.chain.views import TaskStatus
from protocol.commitments.mapping import MAPS_EACH, MOST_MAPS
from protocol.tasks.offers import Figures, Training, seconds_needed
from protocol.tasks.task import Terms
from solver.context import Context
from solver.fetching import FETCHES

MAPS_FOR_TASKS = MOST_MAPS - (FETCHES + 1) * MAPS_EACH
"""Limit on the memory maps of the bundles of all tasks. The remaining maps are for candidates, which are
loaded at the same time but must not keep the bundle of a won task out of memory.
"""


def by_device(
    context: Context, terms: Terms, trained: Sequence[int], submitted: Sequence[int], figures: Figures
) -> Iterator[tuple[str, Figures]]:
    """For each device, a pair: the device, and the bidder's figures for training a task with these terms on
    it. The device with the least work comes first.

    The figures count the `trained` tasks placed on the device, which are those that are trained now or may
    have to be. They also count the `submitted` tasks placed there, and the tasks under other contracts as if
    these were submitted. The memory maps are those of all devices' tasks. The figures cover memory only once
    the task's bundle has been read, because torch measures the memory and is not loaded before that. Raises
    ChainError.
    """
    needs = context.places.needs(terms.program_id)
    places = context.places
    by_place: dict[str, dict[int, Training]] = {device: {} for device in places.devices}
    for task in trained:
        by_place[places.of(task)][task] = _training(context, task, figures)
    for device, trainings in sorted(
        by_place.items(), key=lambda item: sum(one.seconds for one in item[1].values())
    ):
        programs = [context.terms(task).program_id for task in trainings]
        named = {f"task {task}": training for task, training in trainings.items()}
        there = replace(figures, trainings=named)
        if needs is not None:
            room = places.room(device, programs, list(_kept(context, device, submitted)))
            there = replace(there, memory=room, needs=needs)
        yield device, _with_maps(context, terms, [*trained, *submitted], there)


def _kept(context: Context, device: str, submitted: Sequence[int]) -> Iterator[int | None]:
    """For each submitted task placed on a device, and each task under other contracts: the bytes that it may
    take there; None if these are not known.
    """
    places = context.places
    own = [context.terms(task) for task in submitted if places.of(task) == device]
    for terms in (*own, *context.elsewhere().values()):
        yield places.keeps(device, terms.program_id, context.held.get(terms.bundle_hash))


def _with_maps(context: Context, terms: Terms, tasks: Sequence[int], figures: Figures) -> Figures:
    """The figures with `maps` and `maps_left` set: how many memory maps the bundle of `terms` needs, and how
    many the other tasks' bundles leave for it.

    Tasks with the same bundle share its maps, so `maps` is 0 if one of `tasks` has this bundle. It is also 0
    if this bundle has not been read yet. Tasks under other contracts do not share maps with this task,
    because they may have another copy of the bundle. If another task's bundle has not been read yet, it
    counts as taking the most maps that a bundle may take.
    """
    own = {context.terms(task).bundle_hash for task in tasks}
    bundles = [*own, *(other.bundle_hash for other in context.elsewhere().values())]
    held = [context.held.get(bundle) for bundle in bundles]
    mine = None if terms.bundle_hash in own else context.held.get(terms.bundle_hash)
    taken = sum(MAPS_EACH if one is None else one.maps for one in held)
    return replace(figures, maps=0 if mine is None else mine.maps, maps_left=MAPS_FOR_TASKS - taken)


def _training(context: Context, task: int, figures: Figures) -> Training:
    """The rest of a task's training. If it has not begun, it is assumed to begin now."""
    view, terms = context.client.market.task(task), context.terms(task)
    kept = max(0, context.database.kept(task) - 1) / terms.segments
    begun = view.status is TaskStatus.TRAINING
    left = view.train_until - context.client.now() if begun else terms.training_period
    return Training(seconds_needed(terms, figures) * (1 - kept), left)
