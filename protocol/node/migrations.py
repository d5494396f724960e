"""Converts a database from one version to the next, and first copies the old file.

The version is a number, `PRAGMA user_version`. A party's `migrations.py` has one `Migration` for each step to
the next version. Each runs in one transaction, which also sets the new version, so a process that is killed
at any moment leaves a complete database of one version or the next.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Execute = Callable[[str], list[Any]]
"""Runs one statement and returns its rows."""


@dataclass(frozen=True, slots=True)
class Migration:
    """The step from `version` to the next one. `change` converts the tables, inside a transaction."""

    version: int
    what: str
    """The change in words, for logs and readers."""
    change: Callable[[Execute], None]


def copy_of(path: Path, version: int) -> Path:
    """Path of the copy of a database of this version: "solver-v1.sqlite" next to "solver.sqlite"."""
    return path.with_name(f"{path.stem}-v{version}{path.suffix}")


def keep_copy(connection: sqlite3.Connection, path: Path, version: int) -> Path:
    """Write a copy of an open database, whose version is `version`. An earlier copy of this version is
    replaced only when the new copy is complete. Returns the copy's path.

    Raises OSError, sqlite3.Error.
    """
    kept = copy_of(path, version)
    unfinished = kept.with_name(f"{kept.name}.unfinished")
    unfinished.unlink(missing_ok=True)
    with closing(sqlite3.connect(unfinished)) as copy:
        connection.backup(copy)
    _sync(unfinished)
    unfinished.replace(kept)
    _sync(kept.parent)
    return kept


def tables(execute: Execute) -> set[str]:
    """The names of all tables."""
    return {name for (name,) in execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def columns(execute: Execute, table: str) -> list[str]:
    """The names of a table's columns, in order; none if there is no such table."""
    return [row[1] for row in execute(f"PRAGMA table_info({table})")]


def shape(execute: Execute) -> dict[str, list[Any]]:
    """All tables with their columns: name, type, whether NULL is refused, default, position in the primary
    key.
    """
    return {name: [row[1:] for row in execute(f"PRAGMA table_info({name})")] for name in tables(execute)}


def rebuild(execute: Execute, table: str, create: str, rows: str = "") -> None:
    """Recreate a table with the statement `create`. `rows` is a SELECT that fills it from the old table,
    which is now named `former`; without `rows` the new table is empty.
    """
    execute(f"ALTER TABLE {table} RENAME TO former")
    execute(create)
    if rows:
        execute(f"INSERT INTO {table} {rows}")
    execute("DROP TABLE former")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
