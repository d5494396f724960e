"""Computes the deadlines of our duties in a task. Tasks are ordered by these deadlines, so that the most
urgent tasks come first when workers are few.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from protocol.node.party.exits import Observation
from verifier import answering, juror
from verifier.context import Context
from verifier.look_duties import unopened
from verifier.seats import due_by, own_seats


def replays_due(context: Context, seen: Observation) -> int:
    """The time at which the next digest of our seats is due, in an attestation or in a reveal. If no
    attestation is due, the end of challenges takes the place of an attestation's deadline. Seconds since
    1970.
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
    return min(_deadlines(context, seen))


def sends_due(context: Context, seen: Observation) -> float:
    """The earliest time, not yet over, by which our accounts must have sent a transaction in a task, in
    seconds since 1970. The end of challenges counts as such a time. Infinite if there is none, or if our
    accounts have nothing in the task.
    """
    if not concerns(context, seen):
        return math.inf
    due = (*_deadlines(context, seen), replays_due(context, seen), *_objections(context, seen))
    return min([until for until in due if seen.now <= until], default=math.inf)


def _deadlines(context: Context, seen: Observation) -> Iterator[int]:
    """The deadlines of `due_next`."""
    yield due_by(seen, context.clients)
    yield from juror.deadlines(context, seen)
    yield from _answers(context, seen)


def concerns(context: Context, seen: Observation) -> bool:
    """Whether our accounts have a seat, a look, a place in the jury, a claim or a challenge in a task."""
    if own_seats(seen, context.clients, attested=True) or context.database.all_challenges(seen.view.task):
        return True
    jury = context.juries.of(seen.view.task)
    if jury is None:
        return False
    claimants = [] if jury.claim is None else [jury.claim.account]
    return any(account in context.clients for account in (*claimants, *(one.account for one in jury.jurors)))


def _objections(context: Context, seen: Observation) -> Iterator[int]:
    """The last second for an objection by one of our accounts."""
    jury = context.juries.of(seen.view.task)
    if jury is None or jury.claim is None or jury.view is None:
        return
    if jury.claim.account in context.clients:
        yield jury.view.until + context.terms(seen.view.task).move_time


def _answers(context: Context, seen: Observation) -> Iterator[int]:
    for look, _, _ in answering.accused(context, seen):
        stands = context.looks.of(seen.view.task, look.number)
        if stands is not None and seen.now <= stands.until:
            yield stands.until
