"""The dumps of `tests/vectors/databases` as files on disk."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parents[2] / "vectors" / "databases"


@dataclass(frozen=True, slots=True)
class Dump:
    """A dump of a database in the present format or an earlier one (`sql`), and what the code of that time
    read from the database (`known`).
    """

    name: str
    sql: str
    known: dict[str, Any]


def dumps(kind: str) -> list[Dump]:
    """All dumps of a kind, such as "verifier"."""
    files = sorted(FOLDER.glob(f"{kind}-*.sql"))
    return [
        Dump(file.stem, file.read_text(), json.loads(file.with_suffix(".json").read_text())) for file in files
    ]


def written(dump: Dump, path: Path) -> Path:
    """Write a dump as a database file; returns its path."""
    with closing(sqlite3.connect(path)) as database:
        database.executescript(dump.sql)
    return path


def put_back(path: Path, dump: Dump, renamed: Mapping[str, str] | None = None) -> None:
    """Convert a database in today's format to the format of a dump. The file gets the dump's tables, filled
    with the rows that the database has now. The file must not be open.

    `renamed` maps a table of the dump to its name today.
    """
    former = path.with_name(f"{path.name}.former")
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"ATTACH '{written(dump, former)}' AS former")
        tables = "SELECT name FROM former.sqlite_master WHERE type = 'table'"
        for (table,) in database.execute(tables).fetchall():
            now = (renamed or {}).get(table, table)
            here, there = (
                [row[1] for row in database.execute(f"PRAGMA {schema}.table_info({name})")]
                for schema, name in (("main", now), ("former", table))
            )
            columns = ", ".join(column for column in there if column in here)
            database.execute(f"DELETE FROM former.{table}")
            database.execute(f"INSERT INTO former.{table} ({columns}) SELECT {columns} FROM main.{now}")
        database.commit()
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
        path.with_name(name).unlink(missing_ok=True)
    former.rename(path)
