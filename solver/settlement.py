"""After submission: draw the audit, settle, or void a task whose attestations never came.

Anyone may do any of it, so races are harmless. The draw is the solver's own concern: a task that nobody draws burns
its stake.
"""

from __future__ import annotations

from protocol.chain.errors import HeaderError, RpcRefused
from protocol.chain.header import HISTORY
from protocol.chain.parameters import TOKEN
from protocol.chain.views import TaskStatus, TaskView
from protocol.node.party.funds import withdraw_above
from protocol.tasks.task import Terms
from solver.context import Context


def advance(context: Context, view: TaskView) -> bool:
    """Do what is due on a submitted task now; True if something was sent."""
    market, audit, task = context.client.market, context.client.audit, view.task
    undrawn = audit.drawn_at(task) == 0
    if undrawn and not audit.draw_lost(task):
        return _draw(context, view)
    if context.client.now() <= view.challenge_until or view.open_games:
        return False
    if undrawn:
        context.log.error("no draw was proved in time: the stake burns", task=task)
    elif audit.satisfied(task):
        return context.send("settle", lambda: market.settle(task), task=task) is not None
    return context.send("voidTask", lambda: market.void(task), task=task) is not None


def lost(context: Context, view: TaskView, terms: Terms) -> dict[str, float]:
    """What a task that is over cost this solver, in tokens, by what it was: nothing if it was paid."""
    unpaid = {"price_tokens": view.price / TOKEN}
    if view.status is TaskStatus.REFUNDED:
        return {"penalty_tokens": terms.delay_penalty / TOKEN, **unpaid}
    if view.status is TaskStatus.SLASHED:
        return {"stake_tokens": terms.stake / TOKEN, **unpaid}
    if view.status is TaskStatus.VOID:
        undrawn = context.client.audit.drawn_at(view.task) == 0
        return {"stake_tokens": terms.stake / TOKEN * undrawn, **unpaid}
    return {}


def withdraw(context: Context, keep: int) -> int:
    """Take free tokens above `keep` out of the vault; how many (token units)."""
    amount, receipt = withdraw_above(context.client, keep)
    if receipt is not None:
        context.count("withdraw", receipt, amount=str(amount))
    return amount


def _draw(context: Context, view: TaskView) -> bool:
    audit, task, block = context.client.audit, view.task, view.draw_block
    newest = context.client.connection.block().number
    if newest <= block:
        return False
    if newest - block > HISTORY:
        return context.send("missed", lambda: audit.missed(task), task=task) is not None
    try:
        return context.send("draw", lambda: audit.draw(task, block), task=task) is not None
    except (RpcRefused, HeaderError) as error:  # a node that serves no such header; others may draw
        left = HISTORY - (newest - block)
        context.log.error(
            "no header for the draw", task=task, block=block, blocks_left=left, error=str(error)
        )
        return False
