"""The resources that a process uses, read from /proc."""

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
    """Resources of one process: `resident` and `anonymous` memory in bytes, and processor time in `seconds`.

    `anonymous` is resident memory without a backing file. It excludes pages of libraries, which are loaded on
    first use.
    """

    resident: int
    anonymous: int
    files: int
    threads: int
    seconds: float


def usage_of(pid: int) -> Usage:
    """The resources of a process. If it has ended, raises OSError, or KeyError if its parent has not yet
    collected its exit status.
    """
    folder = Path("/proc") / str(pid)
    lines = (line.split(":", 1) for line in (folder / "status").read_text().splitlines())
    status = {name: value.split() for name, value in lines}
    # utime and stime are fields 14 and 15; field 2, the name, may have spaces and ends with the last
    # parenthesis.
    fields = (folder / "stat").read_text().rpartition(")")[2].split()
    return Usage(
        resident=int(status["VmRSS"][0]) * 1024,
        anonymous=int(status["RssAnon"][0]) * 1024,
        files=sum(1 for _ in (folder / "fd").iterdir()),
        threads=int(status["Threads"][0]),
        seconds=(int(fields[11]) + int(fields[12])) / TICKS,
    )


def folder_bytes(folder: Path) -> int:
    """Total size of the files below a folder, in bytes. Files that disappear meanwhile are ignored."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.stat(os.path.join(root, name)).st_size
    return total


def database_bytes(folder: Path) -> int:
    """The size of the SQLite databases in a folder's subfolders, in bytes.

    It includes pages that are still in the write-ahead logs, but not the size of the logs, which depends on
    when they were last truncated.
    """
    total = 0
    for path in folder.glob("*/*.sqlite"):
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            ((pages,), (size,)) = (
                database.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size")
            )
            total += pages * size
    return total
