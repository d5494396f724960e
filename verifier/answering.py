"""Answers an accusation against one of our seats or looks with the accused leaf's siblings (audit.md section
6).

If our own states have a different chunk at the accused place, the solver's step tree is false. Then we do not
send the siblings, but play a game against the solver.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from protocol.chain.views import Seat, TaskStatus
from protocol.dispute.looks import Look
from protocol.node.party.exits import Observation
from verifier.context import Context
from verifier.database import Challenge
from verifier.findings import Committed
from verifier.jobs import Job
from verifier.look_events import Accused
from verifier.salts import salt_of_challenge, salted_seats


def answers(context: Context, seen: Observation) -> Iterator[Job]:
    """Jobs that answer accusations against our seats and looks. Each replays a segment, at least up to the
    accused state.
    """
    for look, seat, told in accused(context, seen):
        stands = context.looks.of(seen.view.task, look.number)
        in_time = stands is not None and seen.now <= stands.until
        row, (segment,) = _playing(context, seen, look, seat), context.segments(seen.view.task, look.number)
        # If the game is on an earlier segment, the solver's states of this segment may still match.
        if in_time and (row is None or row.segment not in (None, segment)):
            work = partial(_answer, context, seen, look, seat, told)
            assert stands is not None, "it is in time"
            yield Job(seen.view.task, f"answer {look.number}", work, context.work_by(stands.until))


def contests(context: Context, seen: Observation) -> Iterator[Job]:
    """Jobs that answer an accusation by naming our open game against the solver."""
    for look, seat, _ in accused(context, seen):
        stands = context.looks.of(seen.view.task, look.number)
        row = _playing(context, seen, look, seat)
        in_time = stands is not None and not stands.game and seen.now <= stands.until
        if row is not None and row.game is not None and in_time:
            work = partial(_contest, context, seen.view.task, look.number, row)
            yield Job(seen.view.task, f"contest {look.number}", work)


def accused(context: Context, seen: Observation) -> Iterator[tuple[Seat, Seat, Accused]]:
    """For each accusation against one of our seats or looks: the look that accuses, the accused seat or look,
    and the accusation.
    """
    if seen.view.status is not TaskStatus.SUBMITTED or not seen.accusations:
        return
    own = {seat.number: seat for seat in seen.places if seat.account in context.clients}
    each = context.terms(seen.view.task).segments_per_verifier
    for look in seen.looks:
        seat = own.get(Look.of(look.number).looked_at(each))
        told = context.looks.accused(seen.view.task, look.number)
        if seat is not None and told is not None:
            yield look, seat, told


def _playing(context: Context, seen: Observation, look: Seat, seat: Seat) -> Challenge | None:
    """The unfinished challenge by the seat's account that disputes the looked-at segment; None if there is no
    such challenge. The challenge names this segment or an earlier one, or it names no segment because the
    false one is not known yet. If there are several such challenges, one with a game is preferred to one
    without; among the preferred ones, the one that names the latest segment is returned.
    """
    (segment,) = context.segments(seen.view.task, look.number)
    rows = [
        row
        for row in context.database.challenges(seen.view.task)
        if row.account == seat.account and not row.asks and row.outcome is None
        if row.segment is None or row.segment <= segment
    ]
    return max(rows, key=lambda row: (row.game is not None, row.segment or 0), default=None)


def _answer(context: Context, seen: Observation, look: Seat, seat: Seat, told: Accused) -> None:
    """Answer the accusation, or challenge the solver. Raises ChainError, BundleError, CommitmentError."""
    view, material = seen.view, context.load(seen.view.task)
    (own,) = salted_seats(context, seen, [seat])
    (segment,) = context.segments(view.task, look.number)
    committed = Committed(view.root, view.size)
    opening = material.replayer.open_chunk(
        committed, segment, own.digester(material.terms.thinning), told.place
    )
    if opening is not None and opening.leaf == told.leaf:
        client = context.clients[seat.account]
        receipt = client.looks.answer(view.task, look.number, told.segment_root, opening)
        context.log.info("answered", task=view.task, look=look.number, gas=receipt.gas_used)
        return
    context.log.warning("different", task=view.task, segment=segment, solver=view.solver)
    context.database.put_challenge(
        Challenge(
            view.task,
            seat.number,
            seat.account,
            segment,
            salt_of_challenge(context.clients[seat.account], view.task, seat.number, segment),
            b"".join(material.replayer.roots(committed)),
        )
    )


def _contest(context: Context, task: int, look: int, row: Challenge) -> None:
    assert row.game is not None, "an open game is named"
    context.clients[row.account].looks.contest(task, look, row.game)
    context.log.warning("contested", task=task, look=look, game=row.game)
