"""What a solver must remember across a crash (SQLite, WAL): how far it has come with each task, the
checkpoints of won tasks, and its ledger.

A task's status is on the chain, and the journal of `protocol.chain` knows what was sent; this database stores
the rest. Every write is one transaction that is on disk when the method returns. So after a kill at any
point, the database has either the old row or the new one. The bytes of a checkpoint are stored elsewhere as
blobs, before the checkpoint's row is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from enum import StrEnum
from pathlib import Path

from protocol.node.database import Identity, NodeDatabase
from solver.ledger import Flow, Kind, Spent
from solver.migrations import LEDGER, MIGRATIONS

_SCHEMA = """
CREATE TABLE tasks (
    task INTEGER PRIMARY KEY, stage TEXT NOT NULL, note TEXT NOT NULL, sent INTEGER NOT NULL
) STRICT;
CREATE TABLE checkpoints (
    task INTEGER NOT NULL REFERENCES tasks (task), number INTEGER NOT NULL, manifest TEXT NOT NULL,
    root BLOB NOT NULL, PRIMARY KEY (task, number)
) STRICT, WITHOUT ROWID;
"""


class Stage(StrEnum):
    """How far this solver has come with a task. A successful task goes through BID, TRAINING, SUBMITTED and
    OVER. OUTBID means that this solver's bid has not won: another solver is ahead, another solver has the
    task, or bidding has ended. A re-organisation may still change that.
    """

    REFUSED = "refused"
    BID = "bid"
    OUTBID = "outbid"
    TRAINING = "training"
    SUBMITTED = "submitted"
    OVER = "over"


TAKEN = (Stage.TRAINING, Stage.SUBMITTED)
"""Stages of won tasks that are not over: they must be trained, defended or settled."""
BIDDEN = (Stage.BID, Stage.OUTBID)
"""Stages of tasks with this solver's bid, which may still be won."""
LIVE = (*BIDDEN, *TAKEN)
"""Stages of tasks that may still change. There are always few such tasks."""


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task that this solver has refused, bid on or won. `sent` is the size of the largest segment tree
    that it has committed, or tried to commit.
    """

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


@dataclass(frozen=True, slots=True)
class Booked:
    """How far the ledger goes. It has all events up to `block`, whose time is `time`, and all of the
    account's transactions with a nonce below `nonce`.
    """

    block: int
    time: int
    nonce: int


class Database(NodeDatabase):
    """The solver's SQLite file."""

    PARTY = "solver"
    VERSION = 2
    APPLICATION = 0x41735331  # "AsS1"
    SCHEMA = _SCHEMA + LEDGER
    MIGRATIONS = MIGRATIONS

    def __init__(self, path: Path, identity: Identity | None) -> None:
        super().__init__(path, identity)
        found = self._execute("SELECT stage, count(*) FROM tasks GROUP BY stage")
        self._counts = Counter({Stage(stage): count for stage, count in found})
        # Every look needs these rows, so they are kept in memory: a large file is read only once.
        self._live = {row.task: row.stage for row in self.tasks() if row.stage in LIVE}

    def tasks(self) -> list[TaskRow]:
        """All tasks, by id."""
        return self._rows("ORDER BY task")

    def task(self, task: int) -> TaskRow | None:
        """One task; None if this solver has neither refused it nor bid on it."""
        return next(iter(self._rows("WHERE task = ?", task)), None)

    def last(self, stage: Stage, count: int) -> list[TaskRow]:
        """At most `count` tasks of this stage: those with the largest ids, in ascending order of id."""
        return self._rows("WHERE stage = ? ORDER BY task DESC LIMIT ?", stage.value, count)[::-1]

    def live(self, *stages: Stage) -> list[int]:
        """The tasks in these stages, by id. The stages must be among `LIVE`. Reads nothing from disk."""
        with self._lock:
            return sorted(task for task, stage in self._live.items() if stage in stages)

    def counts(self) -> dict[Stage, int]:
        """The number of tasks in each stage. Reads nothing from disk."""
        with self._lock:
            return {stage: count for stage, count in self._counts.items() if count}

    def put(self, task: int, stage: Stage, note: str = "") -> None:
        """Record the stage of a task; `note` gives details, such as why it was refused, or the outcome."""
        with self._lock:
            before = self.task(task)
            self._execute(
                "INSERT INTO tasks VALUES (?, ?, ?, 0) "
                "ON CONFLICT (task) DO UPDATE SET stage = excluded.stage, note = excluded.note",
                (task, stage.value, note),
            )
            if before is not None:
                self._counts[before.stage] -= 1
            self._counts[stage] += 1
            self._live.pop(task, None)
            if stage in LIVE:
                self._live[task] = stage

    def _rows(self, which: str, *values: object) -> list[TaskRow]:
        # `which` is one of the constants above; values are bound.
        rows = self._execute(f"SELECT task, stage, note, sent FROM tasks {which}", values)
        return [TaskRow(task, Stage(stage), note, sent) for task, stage, note, sent in rows]

    def put_sent(self, task: int, size: int) -> None:
        """Record that a segment tree of `size` leaves is about to be sent, which makes it public."""
        self._execute("UPDATE tasks SET sent = max(sent, ?) WHERE task = ?", (size, task))

    def checkpoints(self, task: int) -> list[CheckpointRow]:
        """The checkpoints of a task, from the initial state on."""
        rows = self._execute(
            "SELECT number, manifest, root FROM checkpoints WHERE task = ? ORDER BY number", (task,)
        )
        return [CheckpointRow(*row) for row in rows]

    def kept(self, task: int) -> int:
        """The number of a task's checkpoints."""
        ((count,),) = self._execute("SELECT count(*) FROM checkpoints WHERE task = ?", (task,))
        return int(count)

    def add_checkpoint(self, task: int, row: CheckpointRow) -> None:
        """Add the next checkpoint of a task. Raises sqlite3.IntegrityError if the task already has a
        checkpoint with this number.
        """
        self._execute(
            "INSERT INTO checkpoints VALUES (?, ?, ?, ?)", (task, row.number, row.manifest, row.root)
        )

    def kept_tasks(self) -> list[int]:
        """Tasks with checkpoints, by id."""
        return [task for (task,) in self._execute("SELECT DISTINCT task FROM checkpoints ORDER BY task")]

    def drop_checkpoints(self, task: int) -> None:
        """Forget the checkpoints of a task; the task's row stays."""
        self._execute("DELETE FROM checkpoints WHERE task = ?", (task,))

    def booked(self) -> Booked | None:
        """How far the ledger goes; None before the first `book`."""
        return next((Booked(*row) for row in self._execute("SELECT block, time, nonce FROM booked")), None)

    def book(self, flows: Iterable[Flow], spent: Iterable[Spent], upto: Booked) -> None:
        """Add entries to the ledger, and note how far it goes, in one transaction. Existing entries are not
        changed.
        """
        with self._transaction():
            for flow in flows:
                values = (*astuple(flow)[:4], flow.kind.value, str(flow.units), flow.lock, flow.transaction)
                self._execute("INSERT OR IGNORE INTO flows VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
            for one in spent:
                amounts = (str(one.price), str(one.fee), str(one.value), str(one.credit))
                values = (*astuple(one)[:6], int(one.succeeded), one.gas, *amounts)
                self._execute(
                    "INSERT OR IGNORE INTO spent VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values
                )
            self._execute("INSERT OR REPLACE INTO booked VALUES (1, ?, ?, ?)", astuple(upto))

    def flows(self) -> list[Flow]:
        """All movements of tokens, in the chain's order."""
        rows = self._execute("SELECT * FROM flows ORDER BY block, place")
        return [
            Flow(block, place, time, task, Kind(kind), int(units), lock, transaction)
            for block, place, time, task, kind, units, lock, transaction in rows
        ]

    def spent(self, nonce: int = 0) -> list[Spent]:
        """The transactions in the ledger from a nonce on, in the order of their nonces."""
        rows = self._execute("SELECT * FROM spent WHERE nonce >= ? ORDER BY nonce", (nonce,))
        return [
            Spent(
                transaction,
                mined,
                block,
                time,
                task,
                what,
                bool(done),
                gas,
                int(price),
                int(fee),
                int(value),
                int(credit),
            )
            for transaction, mined, block, time, task, what, done, gas, price, fee, value, credit in rows
        ]
