"""Uses the beacon's rounds in two ways: executes draws, and submits new rounds. A submitted round proves to
the contracts that the beacon is working.

Anyone may do either, so it is not an error if somebody else is faster. The argument `signature_of` returns
the checked signature of a round; it is `Relays.signature`, which raises NoRelay and NoSuchRound.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from protocol.beacon.bn254 import hints, round_message
from protocol.chain.client import Client
from protocol.chain.errors import Reverted
from protocol.chain.receipts import Receipt
from protocol.chain.views import PendingDraw

ALIVE_SECONDS: Final = 86_400
"""The market accepts a task only if the last shown round is at most this many seconds old
(contracts/src/TaskMarket.sol).
"""

GRACE: Final = 5
"""Seconds during which only the party that waits for a draw executes it. Otherwise every party would check
the signature and pay for a transaction that comes too late.
"""
SignatureOf = Callable[[int], bytes]


def due_draw(client: Client, own: int | None = None) -> PendingDraw | None:
    """The first draw in the queue, or None if it is not due yet or the queue is empty. A draw is due once its
    round is published, according to the chain's time. If the caller waits for the draw of its `own` task,
    another task's draw is due only `GRACE` seconds later. Asks no relay.
    """
    first = client.audit.first_draw()
    if first is None:
        return None
    grace = 0 if own in (None, first.task) else GRACE
    return first if client.now() >= client.deployment.beacon.time_of(first.round) + grace else None


def execute_first_draw(
    client: Client, signature_of: SignatureOf, own: int | None = None
) -> tuple[PendingDraw, Receipt] | None:
    """Execute the first draw in the queue, for any task. Returns None if no draw is due (`due_draw`), or
    another party was faster. Raises NoRelay, ChainError.
    """
    due = due_draw(client, own)
    if due is None:
        return None
    signature = signature_of(due.round)
    try:
        return due, client.audit.draw(due.task, signature, hints(round_message(due.round)))
    except Reverted:
        if client.audit.first_draw() == due:
            raise
        return None


def show_round(client: Client, signature_of: SignatureOf, age: int = ALIVE_SECONDS // 2) -> Receipt | None:
    """Submit the newest round to the beacon's contract, unless the last one shown is at most `age` seconds
    old. Returns None if it is not older, or if another party was faster. Raises NoRelay, NoSuchRound,
    ChainError.
    """
    network, now = client.deployment.beacon, client.now()
    if is_shown(client, age, now):
        return None
    newest = network.round_at(now)
    signature = signature_of(newest)
    try:
        return client.beacon.show(newest, signature, hints(round_message(newest)))
    except Reverted:
        if not is_shown(client, age, now):
            raise
        return None


def is_shown(client: Client, age: int, now: int) -> bool:
    """Whether the last shown round was published at most `age` seconds before `now`."""
    latest = client.beacon.latest()
    return latest > 0 and client.deployment.beacon.time_of(latest) + age >= now
