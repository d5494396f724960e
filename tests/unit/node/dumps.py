"""The dumps of `tests/vectors/databases` as files on disk."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parents[2] / "vectors" / "databases"


@dataclass(frozen=True, slots=True)
class Dump:
    """A database of an earlier format, and what the code of its time read from it."""

    name: str
    sql: str
    known: dict[str, Any]


def dumps(kind: str) -> list[Dump]:
    """All of a kind: "verifier"."""
    files = sorted(FOLDER.glob(f"{kind}-*.sql"))
    return [
        Dump(file.stem, file.read_text(), json.loads(file.with_suffix(".json").read_text())) for file in files
    ]


def written(dump: Dump, path: Path) -> Path:
    """A dump as a database file."""
    with closing(sqlite3.connect(path)) as database:
        database.executescript(dump.sql)
    return path
