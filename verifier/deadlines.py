"""Computes the deadlines of our duties in a task. Tasks are ordered by these deadlines, so that the most
urgent tasks come first when workers are few.
"""

from __future__ import annotations

from collections.abc import Iterator

from protocol.node.party.exits import Observation
from verifier import answering, juror
from verifier.context import Context
from verifier.look_duties import unopened
from verifier.seats import due_by


def replays_due(context: Context, seen: Observation) -> int:
    """The time at which the next digest of our seats is due, in an attestation or in a reveal. If no digest
    is due, the time at which challenges end. Seconds since 1970.
    """
    due = due_by(seen, context.clients)
    if seen.audit is None or not any(True for _ in unopened(context, seen)):
        return due
    return min(due, seen.audit.picked_at + context.terms(seen.view.task).move_time)


def due_next(context: Context, seen: Observation) -> int:
    """The earliest deadline of an attestation, vote, opening or answer that our accounts owe in a task, in
    seconds since 1970. If they owe no attestation, the end of challenges takes the place of an attestation's
    deadline.
    """
    return min([due_by(seen, context.clients), *juror.deadlines(context, seen), *_answers(context, seen)])


def _answers(context: Context, seen: Observation) -> Iterator[int]:
    for look, _, _ in answering.accused(context, seen):
        stands = context.looks.of(seen.view.task, look.number)
        if stands is not None and seen.now <= stands.until:
            yield stands.until
