"""Which call moves a task on now, by any account, and making it (dispute.md section 2: every state has an exit).

Anyone may make any of these calls, so races are harmless: the contract refuses the later one. All draws form one
queue, so a party that wants its own task's draw keeps executing the first one.
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
    LAPSE = "lapse"
    REDRAW = "redraw"
    SETTLE = "settle"
    VOID = "voidTask"
    STALL = "stall"
    CLOSE = "closeStalled"


@dataclass(frozen=True, slots=True)
class Observation:
    """A task as the chain shows it at one moment; `now` is the chain's time. `audit`, `seats`, `looks` and the number
    of open `accusations` by looks belong to a submitted task; for others they are None, empty and 0.
    """

    view: TaskView
    now: int
    audit: AuditView | None = None
    seats: Sequence[Seat] = ()
    looks: Sequence[Seat] = ()
    accusations: int = 0

    @property
    def places(self) -> Sequence[Seat]:
        """Seats and looks: places that accounts are drawn for, attest in and are bound by."""
        return *self.seats, *self.looks


def observe(client: Client, view: TaskView) -> Observation:
    """What the chain shows, with only the questions that the task's status needs."""
    if view.status is not TaskStatus.SUBMITTED:
        return Observation(view, client.now())
    return observe_audit(client, view, client.now())


def observe_audit(client: Client, view: TaskView, now: int) -> Observation:
    """What the chain shows of a task that was submitted at some time."""
    task, board = view.task, client.audit
    audit = board.audit(task)
    seats = board.seats(task) if audit.drawn_at else ()
    if not audit.looks:
        return Observation(view, now, audit, seats)
    return Observation(view, now, audit, seats, board.looks(task), client.looks.open_accusations(task))


def exit_due(seen: Observation, deployment: Deployment, grace: int = 0) -> Exit | None:
    """The call that is due, if any; `grace` seconds later for parties that let others go first.

    STALL takes the place of REDRAW where both are possible, after the stall period. A task that was never drawn is
    stalled by `perform`, if no relay has its round.
    """
    view, now = seen.view, seen.now - grace
    if view.status is TaskStatus.BIDDING:
        return Exit.ASSIGN if now > view.bids_until else None
    if view.status is TaskStatus.TRAINING:
        return Exit.EXPIRE if now > view.train_until else None
    closable = now > view.challenge_until and not view.open_games
    if view.status is TaskStatus.UNPAID:  # what looks have accused of is moot, and ends whenever
        return Exit.CLOSE if closable else None
    closable = closable and not seen.accusations
    if seen.audit is None:
        return None
    audit = seen.audit
    if audit.pending:
        return Exit.DRAW if now >= deployment.beacon.time_of(audit.round) else None
    if view.status is not TaskStatus.SUBMITTED:  # a verifier looks at its seats, and at claims, after the end
        return None
    if audit.claimant:  # its verdict ends that (`juries`)
        return None
    if audit.audited:
        return Exit.SETTLE if closable else None
    if audit.level:
        silent = any(not look.attested and now > look.until for look in seen.looks)
        return Exit.REDRAW if silent else None
    due = [seat for seat in seen.seats if not seat.attested and now > seat.until]
    if any(not seat.is_empty for seat in due) or (due and (audit.escrow_draws < ESCROW_DRAWS or audit.purse)):
        return Exit.STALL if is_stalled(seen, deployment) else Exit.REDRAW
    return Exit.VOID if due and closable else None


def is_stalled(seen: Observation, deployment: Deployment) -> bool:
    """Whether the submitted task may be ended unpaid. This needs a first draw that is not executed, or a seat not
    attested, a stall period after it was due or after an informer emptied one or a jury ended; or a jury's draw that
    is not executed.
    """
    audit = seen.audit
    if audit is None or (seen.seats and audit.attested == len(seen.seats)):
        return False
    if audit.claimant and not audit.pending:
        return False
    awaited = audit.claimant or not audit.drawn_at
    since = deployment.beacon.time_of(audit.round) if awaited else audit.drawn_at
    return seen.now > max(since, audit.informed_at) + deployment.parameters.stall_period


def looks_stalled(seen: Observation, deployment: Deployment) -> bool:
    """Whether requested looks, or the jury that a look requested, may be given up: their draw was not executed within
    the stall period after its round.
    """
    if seen.audit is None or not seen.audit.pending or not seen.audit.level:
        return False
    return seen.now > deployment.beacon.time_of(seen.audit.round) + deployment.parameters.stall_period


def _is_undrawn(seen: Observation, deployment: Deployment) -> bool:
    """Whether the task may be ended because a draw is not executed: its first one, or that of a seat's jury."""
    awaited = seen.audit is not None and (seen.audit.claimant or not seen.audit.drawn_at)
    return bool(awaited) and is_stalled(seen, deployment)


def perform(
    client: Client, seen: Observation, call: Exit, signature_of: Callable[[int], bytes]
) -> Receipt | None:
    """Make the call. None if somebody else executed the draw. Raises ChainError, Reverted where somebody else was
    faster; NoRelay for a draw whose signature no relay has, unless the task, or its looks, may be ended for that
    reason: then they are.
    """
    market, task = client.market, seen.view.task
    if call is Exit.DRAW:
        try:
            done = execute_first_draw(client, signature_of, task)
        except NoRelay:
            if seen.audit is None:
                raise
            looks = bool(seen.audit.level)
            if not (
                looks_stalled(seen, client.deployment) if looks else _is_undrawn(seen, client.deployment)
            ):
                raise
            call = Exit.LAPSE if looks else Exit.STALL
        else:
            return None if done is None else done[1]
    calls: dict[Exit, Callable[[int], Receipt]] = {
        Exit.ASSIGN: market.assign,
        Exit.EXPIRE: market.expire,
        Exit.REDRAW: client.audit.redraw,
        Exit.LAPSE: client.audit.lapse,
        Exit.SETTLE: market.settle,
        Exit.VOID: market.void,
        Exit.STALL: market.stall,
        Exit.CLOSE: market.close_stalled,
    }
    return calls[call](task)
