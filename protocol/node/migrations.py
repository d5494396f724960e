"""How a database of one format is converted to the next, and the copy that is kept of the old file.

A format is a number, `PRAGMA user_version`. A party's `migrations.py` has one `Migration` for each step between two
formats. Each runs in its own transaction, which also sets the new number, so a process killed anywhere leaves a
complete database of one format or the next.
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
    """The step from format `version` to the next one. `change` finds the tables of that format, in a transaction."""

    version: int
    what: str
    """The change in words, for logs and readers."""
    change: Callable[[Execute], None]


def copy_of(path: Path, version: int) -> Path:
    """Where the copy of a database of format `version` is kept: "solver-v1.sqlite" beside "solver.sqlite"."""
    return path.with_name(f"{path.stem}-v{version}{path.suffix}")


def keep_copy(connection: sqlite3.Connection, path: Path, version: int) -> Path:
    """Write the copy of an open database, whole or not at all; its path. An earlier copy of this format is replaced.

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
    """All tables with their columns: name, type, whether NULL is refused, default, place in the primary key."""
    return {name: [row[1:] for row in execute(f"PRAGMA table_info({name})")] for name in tables(execute)}


def rebuild(execute: Execute, table: str, create: str, rows: str = "") -> None:
    """Recreate a table with the statement `create`. `rows` is the SELECT that fills it from the old table, which it
    calls `former`; without it the rows are dropped.
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
