"""Which call moves a task on now, whoever makes it, and making it (dispute.md section 2: every state has an exit).

Anyone may make any of these calls, so races are harmless: the contract refuses the later one. Draws are one queue, so
who wants its own task's executes the first one, again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from protocol.beacon.errors import NoRelay
from protocol.chain.client import Client
from protocol.chain.deployment import Deployment
from protocol.chain.receipts import Receipt
from protocol.chain.views import AuditView, Seat, TaskStatus, TaskView
from protocol.node.party.rounds import execute_first_draw
from protocol.tasks.task import ESCROW_DRAWS


class Exit(StrEnum):
    """A call that moves a task on, by its function's name."""

    ASSIGN = "assign"
    EXPIRE = "expire"
    DRAW = "draw"
    REDRAW = "redraw"
    SETTLE = "settle"
    VOID = "voidTask"
    STALL = "stall"
    CLOSE = "closeStalled"


@dataclass(frozen=True, slots=True)
class Observation:
    """A task as the chain shows it at one moment; `now` is the chain's time. `audit` and `seats` are those of a
    submitted task, None and empty for others.
    """

    view: TaskView
    now: int
    audit: AuditView | None = None
    seats: Sequence[Seat] = ()


def observe(client: Client, view: TaskView) -> Observation:
    """What the chain shows, with no more questions than the task's status needs."""
    if view.status is not TaskStatus.SUBMITTED:
        return Observation(view, client.now())
    audit = client.audit.audit(view.task)
    return Observation(view, client.now(), audit, client.audit.seats(view.task) if audit.drawn_at else ())


def exit_due(seen: Observation, deployment: Deployment, grace: int = 0) -> Exit | None:
    """The call that is due, if any: `grace` seconds later for those who leave it to others first.

    STALL stands for a REDRAW that is possible too, after the stall period. A task that was never drawn is stalled by
    `perform`, where no relay has its round.
    """
    view, now = seen.view, seen.now - grace
    if view.status is TaskStatus.BIDDING:
        return Exit.ASSIGN if now > view.bids_until else None
    if view.status is TaskStatus.TRAINING:
        return Exit.EXPIRE if now > view.train_until else None
    closable = now > view.challenge_until and not view.open_games
    if view.status is TaskStatus.UNPAID:
        return Exit.CLOSE if closable else None
    if seen.audit is None:
        return None
    audit = seen.audit
    if audit.pending:
        return Exit.DRAW if now >= deployment.beacon.time_of(audit.round) else None
    if view.status is not TaskStatus.SUBMITTED:  # a verifier looks at its seats, and at claims, after the end
        return None
    if audit.attested == len(seen.seats):
        return Exit.SETTLE if closable else None
    due = [seat for seat in seen.seats if not seat.attested and now > seat.until]
    if any(not seat.is_empty for seat in due) or (due and (audit.escrow_draws < ESCROW_DRAWS or audit.purse)):
        return Exit.STALL if is_stalled(seen, deployment) else Exit.REDRAW
    return Exit.VOID if due and closable else None


def is_stalled(seen: Observation, deployment: Deployment) -> bool:
    """Whether the submitted task may be ended unpaid: its first draw is still not executed, or a seat not attested, the
    stall period after it was due, or after an informer emptied one.
    """
    if seen.audit is None or (seen.seats and seen.audit.attested == len(seen.seats)):
        return False
    since = seen.audit.drawn_at or deployment.beacon.time_of(seen.audit.round)
    return seen.now > max(since, seen.audit.informed_at) + deployment.parameters.stall_period


def perform(
    client: Client, seen: Observation, call: Exit, signature_of: Callable[[int], bytes]
) -> Receipt | None:
    """Make the call. None if a draw was executed by somebody else. Raises ChainError, Reverted where somebody else was
    faster; NoRelay for a draw whose signature no relay gives, unless the task may be ended for that: then it is.
    """
    market, task = client.market, seen.view.task
    if call is Exit.DRAW:
        try:
            done = execute_first_draw(client, signature_of, task)
        except NoRelay:
            if seen.audit is None or seen.audit.drawn_at or not is_stalled(seen, client.deployment):
                raise
            call = Exit.STALL
        else:
            return None if done is None else done[1]
    calls: dict[Exit, Callable[[int], Receipt]] = {
        Exit.ASSIGN: market.assign,
        Exit.EXPIRE: market.expire,
        Exit.REDRAW: client.audit.redraw,
        Exit.SETTLE: market.settle,
        Exit.VOID: market.void,
        Exit.STALL: market.stall,
        Exit.CLOSE: market.close_stalled,
    }
    return calls[call](task)
