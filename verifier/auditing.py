"""The duties of one verifier: replay what it was drawn for, attest what is equal, accuse what is not.

Jobs for the node's loop. Each is decided anew from the chain and the database, so that a restart or a failure costs at
most a replay.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import zip_longest

from protocol.chain.views import TaskView
from verifier.database import Accusation
from verifier.desk import Desk
from verifier.duties import Sight, open_segments, own_duties
from verifier.replaying import Committed, Different

Job = tuple[str, Callable[[], None]]


def attestations(desk: Desk, sight: Sight) -> Iterator[Job]:
    """Attest the duties whose segment was found equal."""
    task = sight.view.task
    if desk.database.accusation(task) is not None:
        return  # a solver that stands accused is not attested
    for duty in own_duties(sight, desk.client.address):
        steps = desk.database.steps_of(task, duty.segment, sight.view.root)
        if steps is not None:
            yield f"attest {task} {duty.number}", partial(_attest, desk, task, duty.number, steps)


def replays(desk: Desk, sights: Sequence[Sight]) -> Iterator[Job]:
    """Replay the segments of own duties in all tasks, then, for a whistleblower, all other segments."""
    # A task is accused once: whatever became of it, looking again would find the same.
    live = [sight for sight in sights if desk.database.accusation(sight.view.task) is None]
    due = [(sight.view, duty.segment) for sight in live for duty in own_duties(sight, desk.client.address)]
    if desk.settings.whistleblow:
        # Round by round over the tasks: one large task does not keep the others waiting.
        rounds = zip_longest(*(_others(desk, sight) for sight in live))
        due += [item for turn in rounds for item in turn if item is not None]
    for view, segment in due:
        if desk.database.steps_of(view.task, segment, view.root) is None:
            yield f"replay {view.task} {segment}", partial(audit, desk, view, segment)


def audit(desk: Desk, view: TaskView, segment: int) -> None:
    """Replay one segment and note what was found. Raises BundleError, ChainError, CommitmentError."""
    finding = desk.material(view).auditor().audit(Committed(view.root, view.size), segment)
    if isinstance(finding, Different):
        desk.log.warning("different", task=view.task, segment=finding.segment, solver=view.solver)
        salt = secrets.token_bytes(32)
        desk.database.accuse(Accusation(view.task, finding.segment, salt, b"".join(finding.roots)))
        return
    desk.log.info("equal", task=view.task, segment=segment)
    desk.database.put_steps(view.task, segment, view.root, finding.steps)


def _attest(desk: Desk, task: int, duty: int, steps: bytes) -> None:
    desk.database.put_attested(task, duty, steps)
    receipt = desk.client.audit.attest(task, duty, steps)
    desk.log.info("attested", task=task, duty=duty, gas=receipt.gas_used)


def _others(desk: Desk, sight: Sight) -> Iterator[tuple[TaskView, int]]:
    """All segments that were not yet found equal."""
    checked = desk.database.checked(sight.view.task, sight.view.root)
    return ((sight.view, segment) for segment in open_segments(sight) if segment not in checked)
