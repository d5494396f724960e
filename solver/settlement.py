"""After submission: draw the audit, settle, or void a task whose attestations never came.

Anyone may do any of it, so races are harmless. The draw is the solver's own concern: a task that nobody draws burns
its stake.
"""

from __future__ import annotations

from functools import partial

from protocol.chain.errors import HeaderError, RpcRefused
from protocol.chain.header import HISTORY
from protocol.chain.parameters import TOKEN
from protocol.chain.receipts import Receipt
from protocol.chain.views import TaskStatus, TaskView
from protocol.node.party.funds import withdraw_above
from protocol.tasks.task import Terms
from solver.context import Context


def advance(context: Context, view: TaskView) -> None:
    """Begin what is due on a submitted task now."""
    market, audit, task = context.client.market, context.client.audit, view.task
    undrawn = audit.drawn_at(task) == 0
    if undrawn and not audit.draw_lost(task):
        _draw(context, view)
        return
    if context.client.now() <= view.challenge_until or view.open_games:
        return
    if undrawn:
        context.log.error("no draw was proved in time: the stake burns", task=task)
    elif audit.satisfied(task):
        context.begin(task, "settle", partial(market.settle, task))
        return
    context.begin(task, "voidTask", partial(market.void, task))


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


def withdraw(context: Context, keep: int) -> None:
    """Take free tokens above `keep` units out of the vault."""
    amount, receipt = withdraw_above(context.client, keep)
    if receipt is not None:
        context.count("withdraw", receipt, amount=str(amount))


def _draw(context: Context, view: TaskView) -> None:
    audit, task, block = context.client.audit, view.task, view.draw_block
    newest = context.client.connection.block().number
    if newest <= block:
        return
    if newest - block > HISTORY:
        context.begin(task, "missed", partial(audit.missed, task))
        return
    context.begin(task, "draw", partial(_prove, context, task, block, HISTORY - (newest - block)))


def _prove(context: Context, task: int, block: int, left: int) -> Receipt:
    try:
        return context.client.audit.draw(task, block)
    except (RpcRefused, HeaderError) as error:  # a node that serves no such header; others may draw
        context.log.error(
            "no header for the draw", task=task, block=block, blocks_left=left, error=str(error)
        )
        raise
