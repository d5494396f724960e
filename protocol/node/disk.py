"""How much may be written to a shared disk, how much a party has written, and how a folder is deleted."""

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
    """Bytes that may still be written below an existing folder: the free space less `spare`, or less a tenth of the
    disk if that is smaller. Negative where less is free. Raises OSError.
    """
    usage = shutil.disk_usage(folder)
    return usage.free - min(spare, usage.total // 10)


def used(folders: Iterable[Path]) -> int:
    """Bytes that the files below some folders take on the disk; a file with several names counts once. Files may come
    and go meanwhile.
    """
    found = {(stat.st_dev, stat.st_ino): stat.st_blocks * 512 for one in folders for stat in _files(one)}
    return sum(found.values())


def remove(folder: Path) -> None:
    """Delete a folder. It is renamed first, so that a process killed meanwhile leaves it complete or gone;
    `remove_rests` deletes what such a process has left.
    """
    gone = folder.with_name(f"{REMOVED}{uuid4().hex}")
    with suppress(FileNotFoundError):
        folder.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)


def remove_rests(parent: Path) -> None:
    """Delete what killed processes left of folders in `parent` that they were deleting."""
    for path in parent.glob(f"{REMOVED}*"):
        shutil.rmtree(path, ignore_errors=True)


def _files(folder: Path) -> Iterator[os.stat_result]:
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                yield os.stat(os.path.join(path, name), follow_symlinks=False)
