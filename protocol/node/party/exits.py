"""Chooses the call that now moves a task on, and makes this call (dispute.md section 2: every state has an
exit).

Any account may make these calls. If two accounts make the same call, no harm is done: the contract refuses
the later call. All draws form one queue, so a party that needs its own task's draw must first execute the
draws ahead of it.
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
    """A call that moves a task on, with the function's name as value."""

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
    """A task as the chain shows it at one moment; `now` is the chain's time. `accusations` is the number of
    open accusations, and `answers_until` is the latest deadline for an answer to an accusation, past or
    future.

    The fields other than `view` and `now` are read from the chain only if the task is submitted, or if it has
    ended after it was submitted (`observe_audit`). For other tasks these fields are None, empty or 0, except
    that `observe` reads `answers_until` for an unpaid task.
    """

    view: TaskView
    now: int
    audit: AuditView | None = None
    seats: Sequence[Seat] = ()
    looks: Sequence[Seat] = ()
    accusations: int = 0
    answers_until: int = 0

    @property
    def challenged_until(self) -> int:
        """The last second in which the task can be challenged. The task cannot be settled before this second
        is over. The last second is never before `answers_until`, because an accused account may have to play
        a game.
        """
        return max(self.view.challenge_until, self.answers_until)

    @property
    def places(self) -> Sequence[Seat]:
        """The seats and the looks: the places that bind the accounts drawn for them."""
        return *self.seats, *self.looks


def observe(client: Client, view: TaskView) -> Observation:
    """Observe a task. Sends only the requests that its status needs."""
    if view.status is TaskStatus.UNPAID:
        return Observation(view, client.now(), answers_until=client.looks.answers_until(view.task))
    if view.status is not TaskStatus.SUBMITTED:
        return Observation(view, client.now())
    return observe_audit(client, view, client.now())


def observe_audit(client: Client, view: TaskView, now: int) -> Observation:
    """Observe a task that is submitted, or that has ended after it was submitted."""
    task, board = view.task, client.audit
    audit = board.audit(task)
    seats = board.seats(task) if audit.drawn_at else ()
    if not audit.looks:
        return Observation(view, now, audit, seats)
    looks = client.looks
    return Observation(
        view, now, audit, seats, board.looks(task), looks.open_accusations(task), looks.answers_until(task)
    )


def exit_due(seen: Observation, deployment: Deployment, grace: int = 0) -> Exit | None:
    """The call that is due, if any. With `grace`, calls are due that many seconds later, so that others can
    act first.

    After the stall period, STALL replaces the REDRAW of seats, but not that of looks. For a task that was
    never drawn, the call is DRAW; `perform` stalls the task if no relay has the round.
    """
    view, now = seen.view, seen.now - grace
    if view.status is TaskStatus.BIDDING:
        return Exit.ASSIGN if now > view.bids_until else None
    if view.status is TaskStatus.TRAINING:
        return Exit.EXPIRE if now > view.train_until else None
    closable = now > seen.challenged_until and not view.open_games
    if view.status is TaskStatus.UNPAID:  # open accusations are moot, and need not end first
        return Exit.CLOSE if closable else None
    closable = closable and not seen.accusations
    if seen.audit is None:
        return None
    audit = seen.audit
    if audit.pending:
        return Exit.DRAW if now >= deployment.beacon.time_of(audit.round) else None
    if view.status is not TaskStatus.SUBMITTED:  # a task that is over, observed by a verifier
        return None
    if audit.claimant:  # the jury's verdict comes first (`juries`)
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
    """Whether the submitted task may be ended unpaid: some seat has not attested, no jury is voting, and the
    stall period has passed.

    The period begins with the latest of three events: the task's first draw, the last time that an informer
    emptied a seat, and the end of the last jury. While the first draw or a jury's draw is awaited, the time
    of the awaited draw's round is used instead of the time of the first draw.
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
    """Whether requested looks, or a jury that a look requested, may be given up, because the draw was not
    executed within the stall period after its round.
    """
    if seen.audit is None or not seen.audit.pending or not seen.audit.level:
        return False
    return seen.now > deployment.beacon.time_of(seen.audit.round) + deployment.parameters.stall_period


def _is_undrawn(seen: Observation, deployment: Deployment) -> bool:
    """Whether the task may be ended because its first draw, or the draw of a seat's jury, was not executed
    within the stall period.
    """
    awaited = seen.audit is not None and (seen.audit.claimant or not seen.audit.drawn_at)
    return bool(awaited) and is_stalled(seen, deployment)


def perform(
    client: Client, seen: Observation, call: Exit, signature_of: Callable[[int], bytes]
) -> Receipt | None:
    """Make the call. Returns None if the call is a draw and no draw is due any more. If no relay has the
    signature of a draw, the task or its looks are ended, provided that the stall period is over; otherwise
    NoRelay is raised. Raises ChainError, and Reverted if somebody else was faster.
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
