"""The steps after submission: have the seats drawn, and end the task as soon as possible
(`protocol.node.party.exits`).
"""

from __future__ import annotations

from functools import partial
from typing import Final

from protocol.chain.blocks import Block
from protocol.chain.parameters import TOKEN
from protocol.chain.views import TaskStatus, TaskView
from protocol.dispute.view import Phase
from protocol.node.party.balances import Balance
from protocol.node.party.exits import Exit, Observation, exit_due, observe, perform
from protocol.node.party.funds import COIN, withdraw_above, withdraw_credit
from protocol.node.party.juries import Ending, ending_due
from protocol.tasks.task import Terms
from solver.context import Context

GAS: Final = 5_000_000
"""Gas of a task: a bid, progress, submission, draws, and the answers of a game in which the data are served
off-chain (contracts/README.md, "Gas").
"""
GRACE: Final = 10
"""Seconds that this solver waits before it makes a call that another account also has a reason to make. The
claimant also wants its claim ended. The account of a look is paid when its unanswered accusation is ended. If
both send the call, the slower call reverts and costs gas.
"""


def advance(context: Context, view: TaskView, terms: Terms) -> None:
    """Start what is due now for a submitted or unpaid task. A silent seat is drawn again, however long that
    takes, because ending the task instead would pay this solver nothing. An empty seat is also drawn again,
    until neither the escrow nor a purse pays a draw; then the task is ended as void. The task is not settled
    while a claim or an accusation is open. If a claim has delayed seats, the task is not settled until these
    seats have attested.
    """
    client = context.client
    seen = observe(client, view)
    call = exit_due(seen, client.deployment)
    if call is Exit.STALL:
        call = Exit.REDRAW
    if call is not None:
        signature_of = context.relays.signature
        context.begin(view.task, call.value, partial(perform, client, seen, call, signature_of))
    elif terms.jurors and view.status is TaskStatus.SUBMITTED:
        _end_claim(context, seen, terms)
    if seen.accusations and view.status is TaskStatus.SUBMITTED:
        _end_accusations(context, seen)


def _end_accusations(context: Context, seen: Observation) -> None:
    """End accusations that were not answered in time. The accused seat's lock is then taken. If this solver
    did not end them, a look and the seat that it accuses could together leave an accusation open, and the
    task could never be settled.
    """
    task, client = seen.view.task, context.client
    attested = [look for look in seen.looks if look.attested]  # only these can accuse
    client.looks.ask_ahead("lookOf", *([task, look.number] for look in attested))
    for look in attested:
        stands = client.looks.look(task, look.number)
        if stands.accused is None or seen.now <= stands.until + GRACE:
            continue
        if stands.game and client.game.game(stands.game).phase is not Phase.CLOSED:
            continue  # the seat contests the accusation
        take = partial(client.looks.take_unanswered, task, look.number)
        context.begin(task, f"takeUnanswered {look.number}", take)


def _end_claim(context: Context, seen: Observation, terms: Terms) -> None:
    """Close or drop the open claim of a task, if that is possible."""
    task, juries = seen.view.task, context.client.juries
    claim = juries.claim_of(task)
    jury = None if claim is None else context.client.audit.jury(task)
    match ending_due(claim, jury, terms, seen.view.status, seen.now - GRACE):
        case Ending.CLOSE:
            context.begin(task, Ending.CLOSE.value, partial(juries.close, task))
        case Ending.DROP:
            context.begin(task, Ending.DROP.value, partial(juries.drop, task))


def lost(context: Context, view: TaskView, terms: Terms) -> dict[str, float]:
    """What a finished task has cost this solver, in tokens, by kind of loss; empty if this solver was paid.
    The part of the stake that is lost if a jury finds that data are withheld is not included.
    """
    unpaid = {"price_tokens": view.price / TOKEN}
    if view.status is TaskStatus.REFUNDED:
        return {"penalty_tokens": terms.delay_penalty / TOKEN, **unpaid}
    if view.status is TaskStatus.SLASHED:
        return {"stake_tokens": terms.stake / TOKEN, **unpaid}
    if view.status is TaskStatus.VOID:
        undrawn = context.client.audit.audit(view.task).drawn_at == 0
        return {"price_tokens": (view.price - view.price // 2 * undrawn) / TOKEN}
    return {}


def lacking(balance: Balance, stake: int, block: Block) -> str:
    """What the account lacks, in words: coin for the gas of a task, and tokens for a stake of `stake`
    units; "" if it lacks nothing.
    """
    missing = []
    due = GAS * 2 * block.base_fee
    if balance.coin < due:
        missing.append(f"{balance.coin / COIN:g} of the chain's coin, a task's gas may take {due / COIN:g}")
    if balance.tokens < stake:
        missing.append(f"{balance.tokens / TOKEN:g} tokens of {stake / TOKEN:g} for stakes")
    return "; ".join(missing)


def withdraw(context: Context, keep: int) -> None:
    """Withdraw free tokens above `keep` units from the vault, and the coin that answers have earned."""
    amount, receipt = withdraw_above(context.client, keep)
    if receipt is not None:
        context.count("withdraw", receipt, amount=str(amount))
    wei, receipt = withdraw_credit(context.client)
    if receipt is not None:
        context.count("withdrawCredit", receipt, wei=str(wei))
