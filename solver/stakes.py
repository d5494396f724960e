"""A solver's stakes in one deployment: counts the tokens that its unfinished tasks have in locks, and
deposits the tokens that are missing from the stake in the settings.
"""

from __future__ import annotations

from protocol.node.words import amount, tokens
from solver.context import Context
from solver.database import LIVE
from solver.errors import SolverError


def locks(context: Context) -> list[int]:
    """The lock number of each unfinished task of this solver. The lock holds the task's delay penalty or
    stake. A task whose post a re-organisation has removed has no lock. Raises ChainError.
    """
    client = context.client
    views = [client.market.task_if_posted(task) for task in context.database.live(*LIVE)]
    return [
        view.stake
        for view in views
        if view is not None and view.bidder == client.address and not view.status.is_over
    ]


def locked(context: Context) -> int:
    """Token units in the locks of unfinished tasks (`locks`). Raises ChainError."""
    return sum(context.client.vault.lock_of(lock).remaining for lock in locks(context))


def bring(context: Context) -> SolverError | None:
    """Deposit the missing part of the stake. Tokens that are already in the vault, or locked, count towards
    the stake. If the account has too few tokens, deposits nothing and returns the error. Raises ChainError.
    """
    client = context.client
    due = context.settings.stake_units - locked(context)
    free, held = client.tokens()
    if due - free > held:
        return SolverError(
            "stake",
            expected=f"{tokens(due - free)} on account {client.address}",
            got=amount(held, at_most=True),
            remedy="send tokens to it, on a development chain by `assay fund`, or lower --stake",
        )
    for receipt in client.fund(due):
        context.count(receipt.label.split(".")[-1], receipt)
    return None
