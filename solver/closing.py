"""After submission: draw the audit, settle, or void a task whose attestations never came.

Anyone may do any of it, so races are harmless.
"""

from __future__ import annotations

from protocol.chain.errors import RpcRefused
from protocol.chain.views import TaskView
from solver.desk import Desk

REACH = 8_191
"""Blocks whose hash a contract can still learn (EIP-2935)."""


def tend(desk: Desk, view: TaskView) -> bool:
    """Do what is due on a submitted task now; True if something was sent."""
    if desk.client.audit.drawn_at(view.task) == 0:
        return _draw(desk, view)
    if desk.client.now() <= view.challenge_until or view.open_games:
        return False
    market, task = desk.client.market, view.task
    if desk.client.audit.satisfied(task):
        return desk.send("settle", lambda: market.settle(task), task=task) is not None
    return desk.send("voidTask", lambda: market.void(task), task=task) is not None


def withdraw(desk: Desk, keep: int) -> int:
    """Take free tokens above `keep` out of the vault; how many (token units)."""
    vault = desk.client.vault
    amount = vault.free(desk.client.address) - keep
    if amount <= 0:
        return 0
    desk.count("withdraw", vault.withdraw(amount), amount=str(amount))
    return amount


def _draw(desk: Desk, view: TaskView) -> bool:
    audit, task, block = desk.client.audit, view.task, view.draw_block
    newest = desk.client.connection.block().number
    if newest <= block:
        return False
    if newest - block > REACH:
        if desk.client.audit.draw_lost(task):
            return desk.send("voidTask", lambda: desk.client.market.void(task), task=task) is not None
        return desk.send("missed", lambda: audit.missed(task), task=task) is not None
    try:
        return desk.send("draw", lambda: audit.draw(task, block), task=task) is not None
    except RpcRefused as error:  # a node that no longer serves the block; others may draw
        desk.log.warning("no header for the draw", task=task, block=block, error=str(error))
        return False
