"""What a process takes, as the kernel says it under /proc."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Usage:
    """Of one process. `resident` is in bytes; `anonymous` is what of it is backed by no file, so without the pages of
    libraries, which come in as they are used for the first time. `seconds` are of processor time.
    """

    resident: int
    anonymous: int
    files: int
    threads: int
    seconds: float


def usage_of(pid: int) -> Usage:
    """Raises OSError for a process that is gone."""
    folder = Path("/proc") / str(pid)
    lines = (line.split(":", 1) for line in (folder / "status").read_text().splitlines())
    status = {name: value.split() for name, value in lines}
    # utime and stime, fields 14 and 15; the name in field 2 may have spaces and ends with the last parenthesis.
    fields = (folder / "stat").read_text().rpartition(")")[2].split()
    return Usage(
        resident=int(status["VmRSS"][0]) * 1024,
        anonymous=int(status["RssAnon"][0]) * 1024,
        files=sum(1 for _ in (folder / "fd").iterdir()),
        threads=int(status["Threads"][0]),
        seconds=(int(fields[11]) + int(fields[12])) / TICKS,
    )


def folder_bytes(folder: Path) -> int:
    """Size of all files below a folder; files that disappear meanwhile are ignored."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.stat(os.path.join(root, name)).st_size
    return total


def database_bytes(folder: Path) -> int:
    """Of the SQLite databases in a folder's folders, with what is not written back from their logs yet; without the
    logs, whose size says when they were last emptied.
    """
    total = 0
    for path in folder.glob("*/*.sqlite"):
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            ((pages,), (size,)) = (
                database.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size")
            )
            total += pages * size
    return total
