"""The file a node keeps its memory in: SQLite in WAL mode, of one version, one chain and one account.

A party's own `Database` derives from it and adds its tables and methods. Every write is one transaction that is on disk
when the method returns, so a process killed anywhere finds either the old row or the new one.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, ClassVar

from protocol.errors import AssayError

_IDENTITY = "CREATE TABLE identity (chain TEXT NOT NULL, market TEXT NOT NULL, account TEXT NOT NULL)"


class DatabaseError(AssayError):
    """The database is damaged, of another version, or of another chain or account."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose data this is. `chain` is the hash of the chain's first block: ids alone repeat on development chains."""

    chain: str
    market: str
    account: str


class NodeDatabase:
    """One file. Methods may be called from any thread. Raises DatabaseError when the file is not usable."""

    PARTY: ClassVar[str]
    """Whose file it is, for messages: "solver"."""
    VERSION: ClassVar[int]
    APPLICATION: ClassVar[int]
    """The mark that SQLite keeps in the file's header."""
    SCHEMA: ClassVar[str]
    """The tables of this version, statements separated by semicolons."""

    def __init__(self, path: Path, identity: Identity) -> None:
        self._path = path
        self._lock = threading.RLock()
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            self._connection = sqlite3.connect(
                path, check_same_thread=False, isolation_level=None, timeout=10
            )
            self._execute("PRAGMA journal_mode = WAL")
            self._execute("PRAGMA synchronous = FULL")
            self._execute("PRAGMA foreign_keys = ON")
            self._prepare(identity)
        except sqlite3.DatabaseError as error:
            raise self._refuse(f"a SQLite database of a {self.PARTY}", str(error)) from error

    def close(self) -> None:
        """Close the file; the database may not be used afterwards."""
        with self._lock:
            self._connection.close()

    def _prepare(self, identity: Identity) -> None:
        mine = astuple(identity)
        with self._transaction():
            ((version,),) = self._execute("PRAGMA user_version")
            ((application,),) = self._execute("PRAGMA application_id")
            if version == 0 and not self._execute("SELECT name FROM sqlite_master"):
                for statement in (_IDENTITY, *self.SCHEMA.split(";")):
                    self._execute(statement)
                self._execute("INSERT INTO identity VALUES (?, ?, ?)", mine)
                self._execute(f"PRAGMA user_version = {self.VERSION}")
                self._execute(f"PRAGMA application_id = {self.APPLICATION}")
                return
            if (application, version) != (self.APPLICATION, self.VERSION):
                raise self._refuse(
                    f"version {self.VERSION}", f"application {application:#x}, version {version}"
                )
            ((*found,),) = self._execute("SELECT * FROM identity")
            if tuple(found) != mine:
                raise self._refuse(f"data of {', '.join(mine)}", ", ".join(found))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock:
            self._execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._execute("ROLLBACK")
                raise
            self._execute("COMMIT")

    def _execute(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        with self._lock:
            return self._connection.execute(sql, values).fetchall()

    def _refuse(self, expected: str, got: str) -> DatabaseError:
        return DatabaseError(
            f"database {self._path}: expected {expected}, got {got}; move it away or choose another --home"
        )
