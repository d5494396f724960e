"""Makes the calls that advance tasks (`protocol.node.party.exits`), except in tasks that this verifier is
challenging. Also releases our seats and claims compensation.

A verifier with a part in the task makes a call `GRACE` seconds after it is due. Any other verifier waits for
an additional time (`turn`), which starts when it first sees that these seconds are over. This time differs
from account to account. So if all verifiers with a part are silent, typically only one or two of the others
make the call and pay for it. No call is lost by waiting: a draw's round stays valid, and all other calls can
be made at any time after they are due.

Other parties may be faster, so a refusal is not a failure.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from typing import Final

from protocol.chain.views import TaskStatus, TaskView
from protocol.node.party.exits import Exit, Observation, exit_due, observe_audit, perform
from verifier import accusing, compensation, item_claims, juror
from verifier.context import Context
from verifier.deadlines import concerns
from verifier.jobs import Job, unless_refused
from verifier.seats import own_seats, releasable

GRACE = 5
"""Seconds that this verifier waits before it makes a call that advances a task, so that a party with more
interest in the call can make it first. If both made the call, the later one would revert and still cost gas.
"""
LONGEST_TURN: Final = 10
"""The longest turn, as a multiple of the time that a transaction takes. That time is at least two blocks, so
the turns are spread over 20 blocks: 40 s with blocks of 2 s.
"""
VERIFIERS: Final = 1024
"""The number n in `turn`. If at most n / 2 verifiers wait for their turns, the expected number of times that
a call is sent depends only on when the others see it: about 1.4 times if they see it one block after it was
sent, 1024 ** (1 / 20), and 2 times if they see it after two blocks, 1024 ** (2 / 20). If there are more
verifiers, several of them may not wait at all.
"""
DRAWS: Final = 0
"""The key of the queue of draws in `Context.first_due`. The other keys are tasks' numbers, which begin
with 1.
"""
SEATED = (TaskStatus.SUBMITTED, TaskStatus.UNPAID, TaskStatus.SETTLED, TaskStatus.VOID, TaskStatus.SLASHED)
"""Statuses of tasks that may have seats."""
ENDS = (Exit.SETTLE, Exit.VOID, Exit.STALL, Exit.CLOSE)
"""Calls after which nobody can be drawn, looked at or judged."""


def observe(context: Context, view: TaskView, now: int) -> Observation:
    """A task's present state on the chain, read with only the requests that its status needs."""
    if view.status not in SEATED:
        return Observation(view, now)
    return observe_audit(context.client, view, now)


def turn(account: str, call: str, longest: float) -> float:
    """The seconds, at most `longest`, that an account without a part in a task waits before it makes a call
    that is due. `call` names the call and what it is about. The seconds follow from a hash, so the accounts
    take turns.

    Whether there are few accounts or many, only a few have a turn close to the earliest one. With x uniform
    in (0, 1] and n = `VERIFIERS`, the turn is longest * (1 + ln x / ln n), but at least 0. If a call becomes
    visible d seconds after it was sent, about n ** (d / longest) accounts have sent it. This holds for any
    number of accounts up to n / 2. TFMCC suppresses the feedback of multicast receivers in this way (RFC
    4654).
    """
    drawn = sha256(f"{account.lower()} {call}".encode()).digest()
    x = (1 + int.from_bytes(drawn[:6])) / 2**48
    return longest * max(0.0, 1 + math.log(x) / math.log(VERIFIERS))


def due(context: Context, seen: Observation) -> Exit | None:
    """The call that this verifier should make now; None if there is none. Without a part in the task, the
    verifier waits for its turn. The verifier makes no call while it challenges the task, and never pays a
    solver that it found false. It does not settle while one of our looks is undecided (`accusing.undecided`),
    and ends no task in which one of our claims is open. It requests no redraw while one of our seats or looks
    has not attested, because a redraw may punish our own silence. Raises ChainError.
    """
    what = exit_due(seen, context.client.deployment, GRACE)
    if what is None or what is Exit.DRAW:
        context.first_due.pop(seen.view.task, None)
    if what is not None and not (concerns(context, seen) or _has_turn(context, seen, what)):
        return None
    if what in ENDS and item_claims.bound(context, seen):
        return None
    if what is Exit.SETTLE and accusing.undecided(context, seen):
        return None
    rows = context.database.all_challenges(seen.view.task)
    asked = [row for row in rows if row.asks and row.outcome is None and row.opening_until is not None]
    challenges = [row for row in rows if not row.asks]
    if asked or any(row.outcome is None or what is Exit.SETTLE for row in challenges):
        return None
    return None if what is Exit.REDRAW and own_seats(seen, context.clients) else what


def jobs(context: Context, seen: Observation) -> Iterator[Job]:
    """Jobs that send the calls that a task needs, release our seats, and claim compensation."""
    task = seen.view.task
    what = due(context, seen)
    if what is not None:
        # All tasks share one queue of draws, so one draw is executed at a time.
        about = None if what is Exit.DRAW else task
        yield Job(about, what, partial(_perform, context, seen, what))
    for seat in (*releasable(seen, context.clients), *juror.releasable(context, seen)):
        yield Job(task, f"release {seat.number}", partial(_release, context, task, seat.number))
    yield from compensation.jobs(context, seen)


def _has_turn(context: Context, seen: Observation, what: Exit) -> bool:
    """Whether this verifier's turn to make the call has come. The wait begins when this verifier first sees
    that the call is due, because a call can become due at any time, for example when a game or an accusation
    ends. The draws of all tasks form one queue. For a draw in any task, the verifier therefore waits for its
    turn to execute the first draw in the queue. Raises ChainError.
    """
    client, about = context.client, seen.view.task
    call = f"{what.value} {about}"
    if what is Exit.DRAW:
        first = client.audit.first_draw()
        if first is None:
            return False
        about, call = DRAWS, f"{what.value} {first.task} {first.number} {first.round}"
    known, since = context.first_due.get(about, ("", 0))
    if known != call:
        context.first_due[about] = call, seen.now
        since = seen.now
    return seen.now >= since + turn(client.address, call, LONGEST_TURN * client.inclusion)


def _perform(context: Context, seen: Observation, what: Exit) -> None:
    task = seen.view.task
    call = partial(perform, context.client, seen, what, context.relays.signature)
    receipt = unless_refused(context.log, task, what.value, call)
    if receipt is not None:
        context.log.info("mined", what=what.value, task=task, gas=receipt.gas_used)


def _release(context: Context, task: int, seat: int) -> None:
    receipt = context.client.audit.release(task, seat)
    context.log.info("released", task=task, seat=seat, gas=receipt.gas_used)
