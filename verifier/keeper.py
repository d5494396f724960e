"""Making the calls that `duties.action` finds due, but none for a solver that stands accused or was not looked at.

Others may be first: a refusal is no failure.
"""

from __future__ import annotations

from collections.abc import Callable

from protocol.chain.errors import Reverted
from protocol.chain.receipts import Receipt
from protocol.chain.views import TaskStatus, TaskView
from verifier.auditing import has_looked
from verifier.context import Context
from verifier.duties import Action, Observation, action


def observe(context: Context, view: TaskView, now: int, block: int) -> Observation:
    """A task as the chain shows it now, with no more questions than its status needs."""
    audit, task = context.client.audit, view.task
    terms = context.terms(task)
    if view.status is not TaskStatus.SUBMITTED:
        return Observation(view, terms, now, block)
    drawn_at = audit.drawn_at(task)
    over = now > view.challenge_until and not view.open_games
    return Observation(
        view,
        terms,
        now,
        block,
        drawn_at,
        audit.duties(task) if drawn_at else (),
        satisfied=bool(drawn_at) and over and audit.satisfied(task),
        lost=not drawn_at and audit.draw_lost(task),
    )


def due(context: Context, seen: Observation) -> Action | None:
    """The call that this verifier makes now. It ends nothing that it accuses, and never pays a solver that it has found
    false or was drawn for and has not looked at: others may do that.
    """
    what, accusation = action(seen), context.database.accusation(seen.view.task)
    if accusation is not None and (accusation.outcome is None or what is Action.SETTLE):
        return None
    return None if what is Action.SETTLE and not has_looked(context, seen) else what


def perform(context: Context, view: TaskView, what: Action) -> None:
    """Make the call. Raises ChainError, but not for a contract's refusal."""
    market, audit, task = context.client.market, context.client.audit, view.task
    calls: dict[Action, Callable[[], Receipt]] = {
        Action.ASSIGN: lambda: market.assign(task),
        Action.EXPIRE: lambda: market.expire(task),
        Action.DRAW: lambda: audit.draw(task, view.draw_block),
        Action.MISSED: lambda: audit.missed(task),
        Action.SETTLE: lambda: market.settle(task),
        Action.VOID: lambda: market.void(task),
    }
    try:
        receipt = calls[what]()
    except Reverted as error:
        context.log.debug("refused by the contract", what=what.value, task=task, error=error.name)
        return
    context.log.info("mined", what=what.value, task=task, gas=receipt.gas_used)
