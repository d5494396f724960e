"""An SQLite file of the alerts that wait for the operator's webhook, and of the task states that they
reported.

An alert and the state that it reports are written in one transaction, so no change goes unreported if the
process is killed. A change is reported twice if the process is killed after the receiver's answer and before
the answer is noted.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from protocol.node.database import DatabaseError, Identity, NodeDatabase

MOST: Final = 1_000
"""Maximum number of alerts that may wait. If there are more, the oldest are dropped."""
KEPT_SECONDS: Final = 30 * 86_400
"""Seconds for which the key of a posted alert is remembered, counted from when the alert was raised."""

_SCHEMA = """
CREATE TABLE seen (
    market TEXT NOT NULL, task INTEGER NOT NULL, state TEXT NOT NULL, PRIMARY KEY (market, task)
) STRICT, WITHOUT ROWID;
CREATE TABLE alerts (
    id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT UNIQUE, document TEXT NOT NULL, at INTEGER NOT NULL,
    tries INTEGER NOT NULL, posted INTEGER NOT NULL
) STRICT
"""


@dataclass(frozen=True, slots=True)
class Waiting:
    """An alert to post, with the number of failed tries."""

    id: int
    document: Mapping[str, Any]
    tries: int


@dataclass(frozen=True, slots=True)
class Raised:
    """An alert to keep. Another alert with the same `key` is ignored as long as the key is remembered, which
    may be longer than this alert waits (`KEPT_SECONDS`).
    """

    key: str | None
    document: Mapping[str, Any]


class Outbox(NodeDatabase):
    """The file of waiting alerts. Methods raise sqlite3.Error if the disk does not accept a write."""

    PARTY = "node's alerts"
    VERSION = 1
    APPLICATION = 0x41734131  # "AsA1"
    SCHEMA = _SCHEMA

    def put(self, raised: Sequence[Raised], now: int, seen: tuple[str, int, str] | None = None) -> int:
        """Keep alerts. `seen` is the state of a task (market, number, JSON) that they report, and is kept
        with them. Returns how many of the alerts were new.
        """
        new = 0
        with self._transaction():
            for one in raised:
                new += len(
                    self._execute(
                        "INSERT INTO alerts (key, document, at, tries, posted) VALUES (?, ?, ?, 0, 0) "
                        "ON CONFLICT (key) DO NOTHING RETURNING id",
                        (one.key, json.dumps(one.document), now),
                    )
                )
            if seen is not None:
                self._execute("INSERT OR REPLACE INTO seen VALUES (?, ?, ?)", seen)
        return new

    def seen(self) -> dict[tuple[str, int], str]:
        """The states of all tasks, by market and number."""
        return {(market, task): state for market, task, state in self._execute("SELECT * FROM seen")}

    def forget(self, market: str, task: int) -> None:
        """Forget the state of a task that is over for good."""
        self._execute("DELETE FROM seen WHERE market = ? AND task = ?", (market, task))

    def next(self) -> Waiting | None:
        """The next alert to post: the oldest of those with the fewest tries."""
        rows = self._execute(
            "SELECT id, document, tries FROM alerts WHERE NOT posted ORDER BY tries, id LIMIT 1"
        )
        return next((Waiting(number, json.loads(text), tries) for number, text, tries in rows), None)

    def waiting(self) -> int:
        """Number of alerts still to post."""
        ((count,),) = self._execute("SELECT count(*) FROM alerts WHERE NOT posted")
        return int(count)

    def tried(self, number: int) -> None:
        """Record that an alert was not delivered."""
        self._execute("UPDATE alerts SET tries = tries + 1 WHERE id = ?", (number,))

    def posted(self, number: int) -> None:
        """Record that an alert was delivered."""
        self._execute("UPDATE alerts SET posted = 1 WHERE id = ?", (number,))

    def drop(self, now: int, oldest: int) -> int:
        """Drop alerts that have waited since before `oldest`, and those beyond `MOST`. Also forget the keys
        of alerts that were posted long ago. Returns how many waiting alerts were dropped.
        """
        with self._transaction():
            self._execute("DELETE FROM alerts WHERE posted AND at < ?", (now - KEPT_SECONDS,))
            return len(
                self._execute(
                    "DELETE FROM alerts WHERE NOT posted AND (at < ? OR id NOT IN "
                    "(SELECT id FROM alerts WHERE NOT posted ORDER BY id DESC LIMIT ?)) RETURNING id",
                    (oldest, MOST),
                )
            )


def open_outbox(path: Path, identity: Identity) -> tuple[Outbox, Path | None]:
    """Open the outbox at `path`, or create it. A file that is damaged, is of a later version or belongs to
    another node is renamed, because a node with a stake must start anyway. Its new path is then returned too,
    otherwise None. Raises DatabaseError if the disk cannot be read now, or a new file cannot be created.
    """
    try:
        return Outbox(path, identity), None
    except DatabaseError as error:
        if isinstance(error.__cause__, sqlite3.OperationalError) or not path.is_file():
            raise
        aside = path.with_name(f"{path.name}.damaged")
        # The journal that a killed process left is in the file by now, unless another process has the file
        # open. SQLite finds a journal by the name of its file.
        for end in ("-wal", "-shm"):
            with suppress(FileNotFoundError):
                path.with_name(path.name + end).replace(aside.with_name(aside.name + end))
        path.replace(aside)
        return Outbox(path, identity), aside
