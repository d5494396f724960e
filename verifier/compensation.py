"""Collects the compensation that a conviction owes to our seats (audit.md section 8). Anyone may make these
calls, within the time for claims. What was collected is noted in memory, together with the conviction. If a
re-organisation replaces the conviction, the claims begin again. If the conviction is final when a claim is
collected, this is also noted in the database.

A seat gets the game's cost, and the seat's fee if that is still owed, for a game in which its account was the
challenger. The game must be on one of the seat's segments or on none yet. It must not have been dropped, and
the challenger must not have lost it by silence. Without such a game, an attested seat gets the seat's fee
alone, unless it has the convicted segment, has lost its lock, or is a look. For a commitment that was opened
late, the opening itself pays (`challenge_commitment`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from protocol.chain.errors import Reverted
from protocol.chain.parameters import TOKEN
from protocol.chain.views import Seat, TaskStatus
from protocol.dispute.looks import is_look
from protocol.dispute.view import Verdict
from protocol.node.party.exits import Observation
from verifier.challenge_commitment import OPENED_LATE
from verifier.context import Context, Conviction
from verifier.jobs import Job

REFUSALS = ("NothingOwed", "NotOfSeat", "TooLate")
"""The errors with which the contract finally refuses a claim, because the claim was already collected, does
not exist, or comes too late. Other refusals may come from a chain's node that lags.
"""


class Claim(NamedTuple):
    """A seat's claim. With a `game`, it is for the game's cost and the seat's fee. If `game` is None, it is
    for the fee alone.
    """

    seat: Seat
    game: int | None


def pending(context: Context, seen: Observation) -> list[Seat]:
    """Our seats in a convicted task that may still have something to collect. Raises ChainError."""
    if seen.view.status is not TaskStatus.SLASHED:
        return []
    task, database = seen.view.task, context.database
    own = [seat for seat in seen.places if seat.account in context.clients]
    due = [seat for seat in own if not database.is_claimed(task, seat.number)]
    if due and context.claimed:
        convicted = context.client.game.conviction(task)
        due = [seat for seat in due if (task, seat.number, convicted) not in context.claimed]
    return due if due and seen.now <= context.client.commitments.claims_until(task) else []


def jobs(context: Context, seen: Observation) -> Iterator[Job]:
    """Jobs that collect the claims of our seats. A seat's claim waits while a commitment of the seat's
    account is about to be opened late. Raises ChainError.
    """
    task, seats = seen.view.task, pending(context, seen)
    if not seats:
        return
    conviction = context.client.game.conviction(task)
    _, convicted = conviction
    until = context.client.commitments.claims_until(task)
    for seat in seats:
        challenges = [row for row in context.database.all_challenges(task) if row.account == seat.account]
        if any(row.is_committed and row.game is None and row.outcome is None for row in challenges):
            continue  # the commitment is about to be opened late
        if any(row.outcome == OPENED_LATE and row.seat == seat.number for row in challenges):
            _put_claimed(context, task, seat.number, conviction)
            continue
        segments = context.segments(task, seat.number)
        games = [
            row.game for row in challenges if row.game is not None and _pays(context, row.game, segments)
        ]
        if games:
            yield Job(
                task,
                f"claim {seat.number}",
                partial(_fetch, context, task, Claim(seat, games[0]), conviction),
                until,
            )
        elif seat.attested and not seat.caught and not is_look(seat.number) and convicted not in segments:
            fetch = partial(_fetch, context, task, Claim(seat, None), conviction)
            yield Job(task, f"claim {seat.number}", fetch, until)
        else:
            _put_claimed(context, task, seat.number, conviction)
            context.log.info("nothing is owed to a seat", task=task, seat=seat.number, convicted=convicted)


def _pays(context: Context, game: int, segments: list[int]) -> bool:
    """Whether a game entitles a seat to the game's cost and the seat's fee. The game must be on one of the
    seat's `segments`, or on no segment yet. It must not have been dropped, and the challenger must not have
    lost it by silence.
    """
    state = context.client.game.game(game)
    return state.verdict not in (Verdict.CHALLENGER_SILENT, Verdict.DROPPED) and state.segment in (
        0,
        *segments,
    )


def _put_claimed(context: Context, task: int, seat: int, conviction: Conviction) -> None:
    """Record that nothing more is owed to a seat after this conviction. Raises ChainError."""
    context.claimed.add((task, seat, conviction))
    client = context.client
    if (
        client.is_over_for_good(task)
        and client.game.conviction(task, client.connection.final_block()) == conviction
    ):
        context.database.put_claimed(task, seat)


def _fetch(context: Context, task: int, claim: Claim, conviction: Conviction) -> None:
    """Collect a claim of this conviction. A final refusal by the contract is only logged. Raises ChainError."""
    calls, number = context.client.commitments, claim.seat.number
    try:
        receipt = (
            calls.pay_fee(task, number) if claim.game is None else calls.compensate(task, number, claim.game)
        )
    except Reverted as error:
        if error.name not in REFUSALS:
            raise
        context.log.warning("a claim was refused", task=task, seat=number, game=claim.game, error=error.name)
    else:
        paid = [event.arguments["amount"] for event in calls.events(receipt) if event.name == "Compensated"]
        context.log.info(
            "seat's fee fetched" if claim.game is None else "seat compensated",
            task=task,
            seat=number,
            account=claim.seat.account,
            tokens=sum(paid) / TOKEN,
            gas=receipt.gas_used,
        )
    _put_claimed(context, task, number, conviction)
