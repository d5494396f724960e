"""Helpers for tests of sending: small transfers, processes that die while broadcasting, delayed actions."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from protocol.chain.connection import Connection
from protocol.chain.errors import ChainError
from protocol.chain.fees import Call
from protocol.chain.transactions import Sender

NOWHERE = "0x" + "77" * 20


class Interrupted(Exception):
    """Simulates the death of the process at this point."""


def transfer(value: int = 1) -> Call:
    """A transfer of wei to an address that nobody owns."""
    return Call(NOWHERE, b"", "transfer", value)


def broken(connection: Connection, *, arrive: int) -> Connection:
    """A connection to the same node that dies during a broadcast, once `arrive` transactions have arrived."""
    frail = Connection(connection.url)
    real = frail.broadcast

    def broadcast(raws: Sequence[bytes]) -> list[str | ChainError]:
        real(raws[:arrive])
        raise Interrupted

    frail.broadcast = broadcast  # type: ignore[method-assign]
    return frail


def after(what: Callable[[], bool], act: Callable[[], None]) -> threading.Thread:
    """Start a thread that waits until `what` holds, then acts."""

    def run() -> None:
        while not what():
            time.sleep(0.01)
        act()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def is_replaced(sender: Sender, intent: str) -> bool:
    """Whether the node knows a replacement of the intent's first transaction."""
    return any(sender.connection.knows(entry.hash) for entry in sender.journal.of_intent(intent)[1:])
