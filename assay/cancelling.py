"""Cancelling a task without bids: its whole escrow becomes free in the vault.

If a bid is mined first, the contract refuses to cancel, and the task continues.
"""

from __future__ import annotations

from assay.errors import NotCancelled
from protocol.chain.client import Client
from protocol.chain.errors import Reverted
from protocol.chain.views import NOBODY, TaskStatus, TaskView
from protocol.node.words import exact


def require_cancellable(client: Client, task: int) -> int:
    """The escrow, in token units, of a task that this account may cancel now. Raises NotCancelled,
    ChainError.
    """
    with client.connection.view():
        view = client.market.task(task)
        if view.submitter != client.address:
            raise NotCancelled(
                f"task {task}",
                expected=f"one that {client.address} has submitted",
                got=f"one of {view.submitter}",
                remedy="name the account that submitted it: --account",
            )
        if view.status is not TaskStatus.BIDDING or view.bidder != NOBODY:
            raise _too_late(view)
        return client.vault.lock_of(view.escrow).remaining


def cancel(client: Client, task: int) -> int:
    """Cancel a task and return the token units that this frees. Raises ChainError, and NotCancelled if the
    account may not cancel the task or a bid was mined first.
    """
    escrow = require_cancellable(client, task)
    try:
        client.market.cancel(task)
    except Reverted as error:
        if error.name not in ("HasBid", "WrongStatus"):
            raise
        raise _too_late(client.market.task(task)) from error
    return escrow


def _too_late(view: TaskView) -> NotCancelled:
    has_bid = view.status is TaskStatus.BIDDING
    bid = f"a bid of {exact(view.price)} tokens by {view.bidder}"
    return NotCancelled(
        f"task {view.task}",
        expected="one that is up for bids and has none",
        got=bid if has_bid else f"one that is {view.status.name.lower()}",
        remedy=f"follow it with `assay watch {view.task}`",
    )
