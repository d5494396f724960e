"""Making the calls that `duties.chore` finds due. Others may be first: a refusal is no failure."""

from __future__ import annotations

from collections.abc import Callable

from protocol.chain.errors import Reverted
from protocol.chain.receipts import Receipt
from protocol.chain.views import TaskStatus, TaskView
from verifier.desk import Desk
from verifier.duties import Chore, Sight


def see(desk: Desk, view: TaskView, now: int, block: int) -> Sight:
    """A task as the chain shows it now, with no more questions than its status needs."""
    audit, task = desk.client.audit, view.task
    terms = desk.client.market.terms(task)
    if view.status is not TaskStatus.SUBMITTED:
        return Sight(view, terms, now, block)
    drawn_at = audit.drawn_at(task)
    over = now > view.challenge_until and not view.open_games
    return Sight(
        view,
        terms,
        now,
        block,
        drawn_at,
        audit.duties(task) if drawn_at else (),
        satisfied=bool(drawn_at) and over and audit.satisfied(task),
        lost=not drawn_at and audit.draw_lost(task),
    )


def do(desk: Desk, view: TaskView, what: Chore) -> None:
    """Make the call. Raises ChainError, but not for a contract's refusal."""
    market, audit, task = desk.client.market, desk.client.audit, view.task
    calls: dict[Chore, Callable[[], Receipt]] = {
        Chore.ASSIGN: lambda: market.assign(task),
        Chore.EXPIRE: lambda: market.expire(task),
        Chore.DRAW: lambda: audit.draw(task, view.draw_block),
        Chore.MISSED: lambda: audit.missed(task),
        Chore.SETTLE: lambda: market.settle(task),
        Chore.VOID: lambda: market.void(task),
    }
    try:
        receipt = calls[what]()
    except Reverted as error:
        desk.log.debug("refused by the contract", what=what.value, task=task, error=error.name)
        return
    desk.log.info("mined", what=what.value, task=task, gas=receipt.gas_used)
