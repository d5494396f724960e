"""What a solver must remember over a crash: which tasks it took, and the checkpoints of each (SQLite, WAL).

The chain knows a task's status, the journal of `protocol.chain` knows what was sent; here is only what neither knows.
Every write is one transaction that is on disk when the method returns, so a process killed anywhere finds either the
old row or the new one. Checkpoint bytes are blobs elsewhere; a row is written after its blobs are.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from solver.errors import DatabaseError

VERSION = 1
APPLICATION = 0x41735331  # "AsS1": the mark that SQLite keeps in the file's header

_SCHEMA = """
CREATE TABLE identity (chain TEXT NOT NULL, market TEXT NOT NULL, account TEXT NOT NULL);
CREATE TABLE tasks (
    task INTEGER PRIMARY KEY, stage TEXT NOT NULL, note TEXT NOT NULL, sent INTEGER NOT NULL
) STRICT;
CREATE TABLE checkpoints (
    task INTEGER NOT NULL REFERENCES tasks (task), number INTEGER NOT NULL, manifest TEXT NOT NULL,
    root BLOB NOT NULL, PRIMARY KEY (task, number)
) STRICT, WITHOUT ROWID;
"""


class Stage(StrEnum):
    """How far this solver is with a task; the order is that of a good run."""

    REFUSED = "refused"
    BID = "bid"
    TRAINING = "training"
    SUBMITTED = "submitted"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose data this is. `chain` is the hash of the chain's first block: ids alone repeat on development chains."""

    chain: str
    market: str
    account: str


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task that this solver has looked at. `sent` is the size of the largest segment tree it sent for inclusion."""

    task: int
    stage: Stage
    note: str
    sent: int


@dataclass(frozen=True, slots=True)
class CheckpointRow:
    """Checkpoint `number` (0: the initial state): the id of its manifest in the blob store and its state root."""

    number: int
    manifest: str
    root: bytes


class Database:
    """One file. Methods may be called from any thread. Raises DatabaseError when the file is not usable."""

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
            raise self._refuse("a SQLite database of a solver", str(error)) from error

    def close(self) -> None:
        """Close the file; the database may not be used afterwards."""
        with self._lock:
            self._connection.close()

    def tasks(self) -> list[TaskRow]:
        """All tasks, by id."""
        rows = self._execute("SELECT task, stage, note, sent FROM tasks ORDER BY task")
        return [TaskRow(task, Stage(stage), note, sent) for task, stage, note, sent in rows]

    def task(self, task: int) -> TaskRow | None:
        """One task, or None if this solver never looked at it."""
        return next((row for row in self.tasks() if row.task == task), None)

    def put(self, task: int, stage: Stage, note: str = "") -> None:
        """Note the stage of a task; `note` says why (a refusal's reason, an outcome)."""
        self._execute(
            "INSERT INTO tasks VALUES (?, ?, ?, 0) "
            "ON CONFLICT (task) DO UPDATE SET stage = excluded.stage, note = excluded.note",
            (task, stage.value, note),
        )

    def put_sent(self, task: int, size: int) -> None:
        """Note, before it is sent, that a segment tree of `size` leaves becomes public."""
        self._execute("UPDATE tasks SET sent = max(sent, ?) WHERE task = ?", (size, task))

    def checkpoints(self, task: int) -> list[CheckpointRow]:
        """Checkpoints of a task from the initial state on."""
        rows = self._execute(
            "SELECT number, manifest, root FROM checkpoints WHERE task = ? ORDER BY number", (task,)
        )
        return [CheckpointRow(*row) for row in rows]

    def add_checkpoint(self, task: int, row: CheckpointRow) -> None:
        """Keep the next checkpoint of a task, once."""
        self._execute(
            "INSERT INTO checkpoints VALUES (?, ?, ?, ?)", (task, row.number, row.manifest, row.root)
        )

    def _prepare(self, identity: Identity) -> None:
        mine = (identity.chain, identity.market, identity.account)
        with self._transaction():
            ((version,),) = self._execute("PRAGMA user_version")
            ((application,),) = self._execute("PRAGMA application_id")
            if version == 0 and not self._execute("SELECT name FROM sqlite_master"):
                for statement in _SCHEMA.split(";"):
                    self._execute(statement)
                self._execute("INSERT INTO identity VALUES (?, ?, ?)", mine)
                self._execute(f"PRAGMA user_version = {VERSION}")
                self._execute(f"PRAGMA application_id = {APPLICATION}")
                return
            if (application, version) != (APPLICATION, VERSION):
                raise self._refuse(f"version {VERSION}", f"application {application:#x}, version {version}")
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
