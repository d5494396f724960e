"""Chooses the intents of calls such as a deposit. Such a call must be sent only once, even if an interrupted
command is repeated, but nothing in the call tells a repetition from a second deposit.

The intent of such a call consists of the call's name and a random part. If the journal has a pending intent
that nobody in this process waits for, an interrupted command left it. When the same call is sent again, it
takes over this intent and waits for its transaction. After the transaction is mined, however, a repeated call
counts as a new call. By then, the caller can see in a balance or an allowance what is still missing.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from protocol.chain.connection import Connection
from protocol.chain.journal import Entry, Journal, Status


class Idempotency:
    """Chooses the intents for the calls that this process sends to one contract. Callable from any thread."""

    def __init__(self, journal: Journal, connection: Connection) -> None:
        self._journal = journal
        self._connection = connection
        self._lock = threading.Lock()
        self._waited: set[str] = set()

    @contextmanager
    def intent(self, call: str) -> Iterator[str]:
        """The intent for sending a call. While the context lasts, no other caller gets it."""
        with self._lock:
            unseen = self.unfinished(call)
            fresh = unseen is None or self._is_mined(unseen)
            intent = f"{call}:{uuid.uuid4()}" if unseen is None or fresh else unseen
            self._waited.add(intent)
        try:
            yield intent
        finally:
            with self._lock:
                self._waited.discard(intent)

    def unfinished(self, call: str) -> str | None:
        """The intent left by an earlier `call` whose outcome nobody saw. The transaction of that call may or
        may not be mined by now. None if there is no such intent.
        """
        return next((entry.intent for entry in self.unseen(f"{call}:")), None)

    def unseen(self, calls: str) -> Iterator[Entry]:
        """The pending transactions of intents that begin with `calls` and whose outcome nobody saw, in order
        of nonce.
        """
        for entry in self._journal.pending():
            if not entry.intent.startswith(calls) or entry.intent in self._waited:
                continue
            # Attempts with a lower fee stay pending after another attempt was mined and seen. If that one
            # reverted, the journal has no attempts for the intent.
            attempts = self._journal.of_intent(entry.intent)
            if attempts and all(other.status is Status.PENDING for other in attempts):
                yield entry

    def _is_mined(self, intent: str) -> bool:
        entries = self._journal.of_intent(intent)
        return any(self._connection.receipt(entry.hash) is not None for entry in entries)
