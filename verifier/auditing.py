"""The duties of one verifier: replay what it was drawn for, attest what is equal, accuse what is not.

Jobs for the node's loop. Each is decided anew from the chain and the database, so that a restart or a failure costs at
most a replay.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import zip_longest

from protocol.chain.views import TaskView
from verifier.context import Context
from verifier.database import Accusation
from verifier.duties import Observation, open_segments, own_duties
from verifier.replaying import Committed, Different, Equal

SLICE_SECONDS = 3.0

Job = tuple[str, Callable[[], None]]


def attestations(context: Context, seen: Observation) -> Iterator[Job]:
    """Attest the duties whose segment was found equal."""
    task = seen.view.task
    if context.database.accusation(task) is not None:
        return  # a solver that stands accused is not attested
    for duty in own_duties(seen, context.client.address):
        steps = context.database.steps_of(task, duty.segment, seen.view.root)
        if steps is not None:
            yield f"attest {task} {duty.number}", partial(_attest, context, task, duty.number, steps)


def replays(context: Context, observed: Sequence[Observation]) -> Iterator[Job]:
    """Replay the segments of own duties in all tasks, then, for a whistleblower, all other segments.

    Tasks that have to be run from their start come after the others, the one that has come least far first; then by
    the time that is left.
    """
    live = [seen for seen in observed if context.database.accusation(seen.view.task) is None]
    live.sort(key=lambda seen: (context.database.own_segments(seen.view.task), seen.view.challenge_until))
    due = [(seen.view, duty.segment) for seen in live for duty in own_duties(seen, context.client.address)]
    if context.settings.whistleblow:
        # Round by round over the tasks: one large task does not keep the others waiting.
        rounds = zip_longest(*(_others(context, seen) for seen in live))
        due += [item for turn in rounds for item in turn if item is not None]
    running: set[int] = set()
    for view, segment in due:
        if context.database.steps_of(view.task, segment, view.root) is not None or view.task in running:
            continue
        if 0 < context.database.own_segments(view.task) < view.size - 1:
            running.add(view.task)  # one run from the start serves all segments of its task
        yield f"replay {view.task} {segment}", partial(audit, context, view, segment)


def audit(context: Context, view: TaskView, segment: int) -> None:
    """Replay one segment and note what was found. Raises BundleError, ChainError, CommitmentError.

    A run from the start is left after `SLICE_SECONDS`, for other duties may be due; it is taken up again.
    """
    end = time.monotonic() + SLICE_SECONDS
    auditor, committed = context.material(view).auditor, Committed(view.root, view.size)
    finding = auditor.audit(committed, segment)
    while finding is None and time.monotonic() < end:
        finding = auditor.audit(committed, segment)
    if isinstance(finding, Equal):
        context.log.info("equal", task=view.task, segment=segment)
        context.database.put_steps(view.task, segment, view.root, finding.steps)
    elif isinstance(finding, Different):
        context.log.warning("different", task=view.task, segment=finding.segment, solver=view.solver)
        salt = secrets.token_bytes(32)
        context.database.accuse(Accusation(view.task, finding.segment, salt, b"".join(finding.roots)))


def _others(context: Context, seen: Observation) -> Iterator[tuple[TaskView, int]]:
    """All segments that were not yet found equal."""
    checked = context.database.checked(seen.view.task, seen.view.root)
    return ((seen.view, segment) for segment in open_segments(seen) if segment not in checked)


def _attest(context: Context, task: int, duty: int, steps: bytes) -> None:
    context.database.put_attested(task, duty, steps)
    receipt = context.client.audit.attest(task, duty, steps)
    context.log.info("attested", task=task, duty=duty, gas=receipt.gas_used)
