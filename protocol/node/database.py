"""The file that stores a node's state: SQLite in WAL mode, for one version, chain, market and account.

A party's own `Database` derives from `NodeDatabase` and adds its tables and methods. Every write is one
transaction that is on disk when the method returns, so that after a crash the file has either the old row or
the new one. A file of an earlier version is converted to this version (`migrations`), unless it is opened
only for reading.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, ClassVar

from protocol.errors import AssayError
from protocol.node.migrations import Migration, copy_of, keep_copy, shape

_RIGHT = "give this user the right to it, or choose another --home"
_IDENTITY = "CREATE TABLE identity (chain TEXT NOT NULL, market TEXT NOT NULL, account TEXT NOT NULL)"


class DatabaseError(AssayError):
    """The database cannot be used: it is damaged, is of another version and cannot be converted, belongs to
    another chain, market or account, or the disk fails.
    """


@dataclass(frozen=True, slots=True)
class Identity:
    """The owner of the data. `chain` is the hash of the chain's first block, because development chains share
    ids.
    """

    chain: str
    market: str
    account: str


class NodeDatabase:
    """A node's database file. Methods may be called from any thread. Raises DatabaseError if the file is not
    usable.
    """

    PARTY: ClassVar[str]
    """The owner's name in messages, such as "solver". A party's data folder and file are named after it."""
    VERSION: ClassVar[int]
    APPLICATION: ClassVar[int]
    """The application id, which SQLite stores in the file's header."""
    SCHEMA: ClassVar[str]
    """The tables of this version, statements separated by semicolons."""
    MIGRATIONS: ClassVar[tuple[Migration, ...]] = ()
    """The steps from each earlier version to the next, from version 1 on."""

    def __init__(self, path: Path, identity: Identity | None) -> None:
        """Without an identity, the file must exist and be of this version. It is then opened only for
        reading, and its identity is not checked.
        """
        self._path = path
        self._lock = threading.RLock()
        if identity is None:
            self._open_to_read()
            return
        self.identity = identity
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except PermissionError as error:
            raise self._refuse("a folder that this user may write", str(error.strerror), _RIGHT) from error
        try:
            self._connection = sqlite3.connect(
                path, check_same_thread=False, isolation_level=None, timeout=10
            )
            try:
                self._execute("PRAGMA journal_mode = WAL")
                self._execute("PRAGMA synchronous = FULL")
                self._execute("PRAGMA foreign_keys = ON")
                self._prepare(identity)
            except BaseException:
                self._connection.close()
                raise
        except sqlite3.DatabaseError as error:
            raise self._refuse(f"a SQLite database of a {self.PARTY}", str(error)) from error

    def _open_to_read(self) -> None:
        try:
            uri = f"{self._path.absolute().as_uri()}?mode=ro"
            self._connection = sqlite3.connect(
                uri, uri=True, check_same_thread=False, isolation_level=None, timeout=10
            )
            ((version,),) = self._execute("PRAGMA user_version")
            ((application,),) = self._execute("PRAGMA application_id")
            if (application, version) != (self.APPLICATION, self.VERSION):
                raise self._refuse(
                    f"version {self.VERSION}",
                    f"application {application:#x}, version {version}",
                    f"start the {self.PARTY} of this release once: it brings an earlier version to this one",
                )
            ((*found,),) = self._execute("SELECT * FROM identity")
            self.identity = Identity(*found)
        except (sqlite3.Error, ValueError, TypeError) as error:
            raise self._refuse(f"a SQLite database of a {self.PARTY}", str(error)) from error

    @classmethod
    def market_of(cls, path: Path) -> str | None:
        """The market that a file belongs to; None if the file is missing or empty. Raises DatabaseError."""
        try:
            if not path.is_file():
                return None
        except PermissionError as error:
            raise _refused(path, "a folder that this user may read", str(error.strerror), _RIGHT) from error
        try:
            with closing(sqlite3.connect(path, timeout=10)) as found:
                if not found.execute("SELECT name FROM sqlite_master").fetchall():
                    return None
                ((market,),) = found.execute("SELECT market FROM identity").fetchall()
        except (sqlite3.Error, ValueError) as error:
            raise _refused(path, f"a SQLite database of a {cls.PARTY}", str(error)) from error
        return str(market)

    def try_writing(self) -> None:
        """Write unchanged content, as a test. Raises sqlite3.Error if the disk does not accept it."""
        self._execute("UPDATE identity SET chain = chain")

    def close(self) -> None:
        """Close the file. The database must not be used afterwards."""
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
            if application != self.APPLICATION or version < 1:
                raise self._refuse(
                    f"version {self.VERSION}", f"application {application:#x}, version {version}"
                )
            if version > self.VERSION:
                raise self._refuse(
                    f"version {self.VERSION}",
                    f"application {application:#x}, version {version}",
                    "it was left unchanged: use the release that wrote it, or a later one",
                )
            damage = self._execute("PRAGMA quick_check(1)")
            if damage != [("ok",)]:
                raise self._refuse(f"a SQLite database of a {self.PARTY}", str(damage[0][0]))
            ((*found,),) = self._execute("SELECT * FROM identity")
            if tuple(found) != mine:
                raise self._refuse(
                    f"data of {', '.join(mine)}", ", ".join(found), "choose another --home for it"
                )
        if version < self.VERSION:
            self._migrate(version)

    def _migrate(self, version: int) -> None:
        """Convert a file of an earlier version to this version, after making a copy."""
        try:
            keep_copy(self._connection, self._path, version)
        except (OSError, sqlite3.Error) as error:
            raise self._refuse(
                "a copy of it beside it, before it is brought to this version",
                str(error),
                "make room on the disk of --home, then start again",
            ) from error
        for migration in self.MIGRATIONS[version - 1 :]:
            try:
                with self._transaction():
                    migration.change(self._execute)
                    self._execute(f"PRAGMA user_version = {migration.version + 1}")
                    if migration.version + 1 == self.VERSION and shape(self._execute) != self._own_shape():
                        raise sqlite3.DatabaseError("it has other tables than its version")
            except sqlite3.Error as error:
                raise self._refuse(
                    f"tables of version {migration.version}",
                    str(error),
                    "make room where the disk is full and start again; else put a backup in its place. "
                    f"{copy_of(self._path, version).name} beside it is as it was",
                ) from error

    def _own_shape(self) -> dict[str, list[Any]]:
        """The tables of a new file of this version."""
        with closing(sqlite3.connect(":memory:")) as fresh:
            for statement in (_IDENTITY, *self.SCHEMA.split(";")):
                fresh.execute(statement)
            return shape(lambda sql: fresh.execute(sql).fetchall())

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

    def _refuse(self, expected: str, got: str, remedy: str = "") -> DatabaseError:
        return _refused(self._path, expected, got, remedy)


def _refused(path: Path, expected: str, got: str, remedy: str = "") -> DatabaseError:
    return DatabaseError(
        f"database {path}",
        expected=expected,
        got=got,
        remedy=remedy
        or "put a backup in its place; without one move it away or choose another --home, and what is at stake may be "
        "lost",
    )
