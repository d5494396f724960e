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
    """When the next digest of our seats is due, for an attestation or a reveal; if none is due, when
    challenges end. Seconds since 1970.
    """
    due = due_by(seen, context.clients)
    if seen.audit is None or not any(True for _ in unopened(context, seen)):
        return due
    return min(due, seen.audit.picked_at + context.terms(seen.view.task).move_time)


def due_next(context: Context, seen: Observation) -> int:
    """When the next attestation, vote, opening or answer of our accounts in a task is due, in seconds since
    1970. If no attestation is due, the end of challenges takes its place.
    """
    return min([due_by(seen, context.clients), *juror.deadlines(context, seen), *_answers(context, seen)])


def _answers(context: Context, seen: Observation) -> Iterator[int]:
    for look, _, _ in answering.accused(context, seen):
        stands = context.looks.of(seen.view.task, look.number)
        if stands is not None and seen.now <= stands.until:
            yield stands.until
