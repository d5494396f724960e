"""The duties of one verifier: replay what it was drawn for, attest what is equal, accuse what is not.

Each is decided anew from the chain and the database, so that a restart or a failure costs at most a replay. A segment
comes to its verdict by steps: fetch the bundle, load it, ask the solver for the state before the segment, replay; or,
where the solver does not serve it, run the task from its start. Only fetching and asking wait for a stranger, and they
have threads of their own, at most one a task.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, islice, zip_longest

from verifier.context import Context
from verifier.database import Accusation
from verifier.duties import Observation, drawn_segments, open_segments, own_duties
from verifier.jobs import Job, Jobs
from verifier.material import Material
from verifier.replaying import Committed, Different, Equal

SLICE_SECONDS = 3.0
AHEAD = 256
"""Segments of others' duties that a whistleblower considers in one look."""
ASKED_AT_ONCE = 16
"""Checkpoints that are asked for in one job."""


def attestations(context: Context, seen: Observation) -> Iterator[Job]:
    """Attest the duties whose segment was found equal."""
    task = seen.view.task
    if context.database.accusation(task) is not None:
        return  # a solver that stands accused is not attested
    for duty in own_duties(seen, context.client.address):
        steps = context.database.steps_of(task, duty.segment, seen.view.root)
        if steps is not None:
            yield Job(task, f"attest {duty.number}", partial(_attest, context, task, duty.number, steps))


def has_looked(context: Context, seen: Observation) -> bool:
    """Whether all segments that this account was drawn for were found equal."""
    task, root = seen.view.task, seen.view.root
    own = [duty for duty in seen.duties if duty.verifier == context.client.address and not duty.attested]
    return all(context.database.steps_of(task, duty.segment, root) is not None for duty in own)


def offer(context: Context, observed: Sequence[Observation], fetches: Jobs, replays: Jobs) -> None:
    """Offer the next step of every segment that is due: fetches first to the tasks that have cost the least time."""
    live = [seen for seen in observed if context.database.accusation(seen.view.task) is None]
    live.sort(key=lambda seen: _turn(context, seen, replays))
    missing: dict[int, tuple[Material | None, Committed, list[int]]] = {}
    for seen, segment in _due(context, live):
        task, committed = seen.view.task, Committed(seen.view.root, seen.view.size)
        if context.database.steps_of(task, segment, committed.root) is not None:
            continue
        material = context.materials.find(task)
        if material is None:
            if context.materials.has_bundle(seen.terms):
                replays.offer(Job(task, "load", partial(_load, context, task)))
            else:
                missing.setdefault(task, (None, committed, []))
        elif material.auditor.is_here(committed, segment):
            replays.offer(
                Job(task, f"replay {segment}", partial(_replay, context, seen, material, committed, segment))
            )
        else:
            missing.setdefault(task, (material, committed, []))[2].append(segment)
            if material.auditor.was_asked(committed):
                # One run from the start serves all segments of its task.
                replays.offer(Job(task, "run", partial(_replay, context, seen, material, committed, segment)))
    for task in sorted(missing, key=fetches.rests.lost):
        material, committed, segments = missing[task]
        if material is None:
            work = partial(context.fetch, task, fetches.rests.lost(task))
        else:
            work = partial(material.auditor.ask, committed, segments[:ASKED_AT_ONCE])
        fetches.offer(Job(task, "fetch", work))


def _turn(context: Context, seen: Observation, replays: Jobs) -> tuple[float, int, int]:
    """Tasks whose replays failed come after the others, then those that are run from their start, the one that has come
    least far first; then by the time that is left.
    """
    task = seen.view.task
    until = seen.drawn_at + seen.terms.attest_period if seen.drawn_at else seen.view.challenge_until
    return replays.rests.lost(task), context.database.own_segments(task), until


def _due(context: Context, live: Sequence[Observation]) -> Iterator[tuple[Observation, int]]:
    """The segments of own duties in all tasks, then, for a whistleblower, all other segments that were not checked."""
    own = ((seen, segment) for seen in live for segment in drawn_segments(seen, context.client.address))
    if not context.settings.whistleblow:
        return own
    # Round by round over the tasks: one large task does not keep the others waiting.
    rounds = zip_longest(*(_others(context, seen) for seen in live))
    return chain(own, islice((item for turn in rounds for item in turn if item is not None), AHEAD))


def _others(context: Context, seen: Observation) -> Iterator[tuple[Observation, int]]:
    """All segments that were not yet found equal."""
    checked = context.database.checked(seen.view.task, seen.view.root)
    return ((seen, segment) for segment in open_segments(seen) if segment not in checked)


def _load(context: Context, task: int) -> None:
    context.load(task)


def _replay(
    context: Context, seen: Observation, material: Material, committed: Committed, segment: int
) -> None:
    """Compare one segment and note what was found. Raises ChainError, CommitmentError.

    A run from the start is left after `SLICE_SECONDS`, for other duties may be due; it is taken up again.
    """
    task, end = seen.view.task, time.monotonic() + SLICE_SECONDS
    finding = material.auditor.audit(committed, segment)
    while finding is None and time.monotonic() < end:
        finding = material.auditor.audit(committed, segment)
    if isinstance(finding, Equal):
        context.log.info("equal", task=task, segment=segment)
        context.database.put_steps(task, segment, committed.root, finding.steps)
    elif isinstance(finding, Different):
        context.log.warning("different", task=task, segment=finding.segment, solver=seen.view.solver)
        salt = secrets.token_bytes(32)
        context.database.accuse(Accusation(task, finding.segment, salt, b"".join(finding.roots)))


def _attest(context: Context, task: int, duty: int, steps: bytes) -> None:
    context.database.put_attested(task, duty, steps)
    receipt = context.client.audit.attest(task, duty, steps)
    context.log.info("attested", task=task, duty=duty, gas=receipt.gas_used)
