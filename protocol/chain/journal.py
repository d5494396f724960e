"""The journal of one account's transactions: every signed transaction is on disk before the node sees it.

It is an SQLite file in WAL mode, one per account and chain (identified by id and genesis block). A row is one
signed transaction; its *intent* names the purpose. An intent that has a pending or mined row is never signed
again with another nonce. There is one exception: if a transaction of the intent was mined and reverted, the
rows with its nonce do not count.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from protocol.chain.errors import JournalError

VERSION: Final = 1
_SCHEMA = """
CREATE TABLE transactions (
    hash TEXT PRIMARY KEY,
    intent TEXT NOT NULL,
    label TEXT NOT NULL,
    nonce INTEGER NOT NULL,
    raw BLOB NOT NULL,
    status TEXT NOT NULL,
    block INTEGER,
    written REAL NOT NULL
) STRICT;
CREATE INDEX by_intent ON transactions (intent);
CREATE INDEX by_status ON transactions (status, nonce);
"""


class Status(StrEnum):
    """The states of a signed transaction."""

    PENDING = "pending"
    """Signed; perhaps broadcast, perhaps mined."""
    MINED = "mined"
    """Mined and successful."""
    FAILED = "failed"
    """Mined and reverted: the intent may be tried again."""
    DROPPED = "dropped"
    """Not mined. Its nonce is free, or another transaction has used it. The intent may be tried again."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One signed transaction."""

    hash: str
    intent: str
    label: str
    nonce: int
    raw: bytes
    status: Status
    block: int | None


class Journal:
    """The journal at `path`, created if missing. Raises JournalError for a damaged file or another version.

    Safe to use from several threads. Call `close` at the end.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as opened:
            try:
                # Keep one connection open: closing the last one writes the whole log into the file again.
                self._database = opened.enter_context(
                    closing(sqlite3.connect(path, timeout=10.0, check_same_thread=False))
                )
                self._prepare()
            except sqlite3.DatabaseError as error:
                raise JournalError(
                    f"journal {path}",
                    expected="an SQLite file of this program",
                    got=str(error),
                    remedy="move the file away; pending transactions will not be known any more",
                ) from error
            opened.pop_all()

    def _prepare(self) -> None:
        with self._open() as database:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = FULL")
            (version,) = database.execute("PRAGMA user_version").fetchone()
            if version == 0:
                database.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;")
            elif version != VERSION:
                raise JournalError(
                    f"journal {self.path}",
                    expected=f"version {VERSION}",
                    got=version,
                    remedy="use the release that wrote it, until nothing is pending in it",
                )
            (damage,) = database.execute("PRAGMA quick_check(1)").fetchone()
            if damage != "ok":
                raise sqlite3.DatabaseError(damage)

    def write(self, entries: Iterable[Entry]) -> None:
        """Add signed transactions, all or none. They are on disk when this returns. A transaction that was
        dropped and is signed again with the same fields has the same hash, and replaces the dropped one.
        """
        now = time.time()
        rows = [
            (one.hash, one.intent, one.label, one.nonce, one.raw, one.status.value, one.block, now)
            for one in entries
        ]
        with self._open() as database:
            database.executemany("INSERT OR REPLACE INTO transactions VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def mark(self, transaction: str, status: Status, block: int | None = None) -> None:
        """Record the outcome of a transaction."""
        with self._open() as database:
            database.execute(
                "UPDATE transactions SET status = ?, block = ? WHERE hash = ?",
                (status.value, block, transaction),
            )

    def of_intent(self, intent: str) -> list[Entry]:
        """The transactions of an intent that are mined or may be mined, oldest first. Attempts with the nonce
        of a reverted one are left out: they stay pending, but cannot be mined any more.
        """
        return self._select(
            "intent = ? AND status IN ('pending', 'mined') AND nonce NOT IN "
            "(SELECT nonce FROM transactions WHERE intent = ? AND status = 'failed')",
            (intent, intent),
        )

    def reverted(self, intent: str) -> list[Entry]:
        """The transactions of an intent that were mined and reverted, in order of nonce."""
        return self._select("intent = ? AND status = 'failed'", (intent,))

    def pending(self) -> list[Entry]:
        """Transactions whose outcome is not known yet, in order of nonce."""
        return self._select("status = 'pending'", ())

    def since(self, nonce: int) -> list[Entry]:
        """Transactions with this nonce or a higher one, except dropped ones: they are pending or were mined,
        perhaps reverted. They are in order of nonce; of several attempts with one nonce, the latest comes
        last.
        """
        return self._select("status != 'dropped' AND nonce >= ?", (nonce,))

    def signed(self, nonce: int) -> list[Entry]:
        """All transactions with this nonce or a higher one, whatever their outcome, in order of nonce."""
        return self._select("nonce >= ?", (nonce,))

    def _select(self, condition: str, values: tuple[object, ...]) -> list[Entry]:
        # `condition` is one of the literals above; values are bound.
        query = (
            "SELECT hash, intent, label, nonce, raw, status, block FROM transactions "
            f"WHERE {condition} ORDER BY nonce, written"
        )
        with self._open() as database:
            rows = database.execute(query, values).fetchall()
        return [Entry(row[0], row[1], row[2], row[3], row[4], Status(row[5]), row[6]) for row in rows]

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._database.close()

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._database:
            yield self._database
