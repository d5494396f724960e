"""Free and used space on a disk that a party shares with others, and deletion of folders."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

REMOVED = ".removed-"
"""Prefix of the name of a folder that is being deleted."""


def room(folder: Path, spare: int) -> int:
    """Bytes that may still be written below an existing folder: the free space minus a reserve, which is
    `spare` or a tenth of the disk, whichever is smaller. Negative if less than the reserve is free. Raises
    OSError.
    """
    usage = shutil.disk_usage(folder)
    return usage.free - min(spare, usage.total // 10)


def used(folders: Iterable[Path]) -> int:
    """Bytes that the files below some folders take on the disk. A file with several names counts once. Files
    may appear and disappear meanwhile.
    """
    found = {(stat.st_dev, stat.st_ino): stat.st_blocks * 512 for one in folders for stat in _files(one)}
    return sum(found.values())


def remove(folder: Path) -> None:
    """Delete a folder. The folder is renamed first, so that even if the process is killed, no incomplete
    folder keeps the old name. `remove_rests` deletes the renamed folders that killed processes leave.
    """
    gone = folder.with_name(f"{REMOVED}{uuid4().hex}")
    with suppress(FileNotFoundError):
        folder.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)


def remove_rests(parent: Path) -> None:
    """Finish deleting the folders in `parent` that killed processes had begun to delete."""
    for path in parent.glob(f"{REMOVED}*"):
        shutil.rmtree(path, ignore_errors=True)


def _files(folder: Path) -> Iterator[os.stat_result]:
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                yield os.stat(os.path.join(path, name), follow_symlinks=False)
