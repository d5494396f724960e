"""What a process takes, as the kernel says it under /proc."""

from __future__ import annotations

import fnmatch
import os
from contextlib import suppress
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


def folder_bytes(folder: Path, pattern: str) -> int:
    """Of the files below a folder whose names match; what goes meanwhile counts nothing."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in fnmatch.filter(names, pattern):
            with suppress(FileNotFoundError):
                total += os.stat(os.path.join(root, name)).st_size
    return total
