"""Helpers for tests of sending transactions: transfers, connections that break off, delayed actions."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from protocol.chain.connection import Connection
from protocol.chain.errors import ChainError, RpcRefused
from protocol.chain.fees import Call
from protocol.chain.transactions import Sender

NOWHERE = "0x" + "77" * 20


class Interrupted(Exception):
    """Simulates the death of the process at the point where this is raised."""


def transfer(value: int = 1) -> Call:
    """A transfer of wei to an address that nobody owns."""
    return Call(NOWHERE, b"", "transfer", value)


def broken(connection: Connection, *, arrive: int) -> Connection:
    """A connection to the same node. A broadcast sends only the first `arrive` transactions, then raises
    Interrupted.
    """
    frail = Connection(connection.url)
    real = frail.broadcast

    def broadcast(raws: Sequence[bytes]) -> list[str | ChainError]:
        real(raws[:arrive])
        raise Interrupted

    frail.broadcast = broadcast  # type: ignore[method-assign]
    return frail


def refusing(connection: Connection, times: int) -> Connection:
    """A connection to the same node. In each of the first `times` broadcasts, the first transaction is refused."""
    full = Connection(connection.url)
    real, left = full.broadcast, iter(range(times))

    def broadcast(raws: Sequence[bytes]) -> list[str | ChainError]:
        if next(left, None) is None:
            return real(raws)
        return [RpcRefused("broadcast", "txpool is full"), *(real(raws[1:]) if raws[1:] else [])]

    full.broadcast = broadcast  # type: ignore[method-assign]
    return full


def after(what: Callable[[], bool], act: Callable[[], None]) -> threading.Thread:
    """Start a thread that waits until `what` holds and then calls `act`; returns the thread."""

    def run() -> None:
        while not what():
            time.sleep(0.01)
        act()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def wait_mined(connection: Connection, transaction: str) -> None:
    """Wait for the receipt of a transaction; anvil returns the hash before it mines the transaction."""
    while connection.receipt(transaction) is None:
        time.sleep(0.01)


def is_replaced(sender: Sender, intent: str) -> bool:
    """Whether the node knows a transaction that replaces the first one of the intent."""
    return any(sender.connection.knows(entry.hash) for entry in sender.journal.of_intent(intent)[1:])
