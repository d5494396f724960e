"""Writing a file completely or not at all.

The bytes go to a temporary file in the target's own folder, reach the disk (fsync), and take the target's name in one
rename; the folder is then synced so that the name survives a power cut. A reader never sees half a file.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO

from protocol.commitments.hashing import BytesLike

TEMPORARY_PREFIX = ".partial-"
_STALE_SECONDS = 24 * 3600  # no single write takes a day: a killed process left any older temporary file


def write_atomically(path: Path, data: BytesLike) -> None:
    """Make `path` hold exactly `data`. Raises OSError. After an error `path` is unchanged, except if the
    write succeeded and only the folder could not be synced.
    """
    with atomic_file(path) as file:
        file.write(memoryview(data).cast("B"))


def write_new(path: Path, data: BytesLike) -> None:
    """Like `write_atomically`, but raises FileExistsError if `path` already exists, even if another process
    created it only during the write.
    """
    with _written(path, _link) as file:
        file.write(memoryview(data).cast("B"))


def atomic_file(path: Path) -> AbstractContextManager[BinaryIO]:
    """A file that replaces `path` when the block ends. If the block raises, `path` is unchanged."""
    return _written(path, os.replace)


@contextlib.contextmanager
def _written(path: Path, name_it: Callable[[str, Path], None]) -> Iterator[BinaryIO]:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=TEMPORARY_PREFIX, dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        name_it(name, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise
    _sync_folder(path.parent)


def _link(name: str, path: Path) -> None:
    """Rename the file `name` to `path`. Raises FileExistsError if `path` exists."""
    try:
        os.link(name, path)
        os.unlink(name)
    except FileExistsError:
        raise
    except OSError:  # no hard links, as on a memory stick: reserve the name first
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        try:
            os.replace(name, path)
        except OSError:
            os.unlink(path)
            raise


def remove_stale(folder: Path) -> None:
    """Delete temporary files below `folder` that are more than a day old. Killed processes left them behind."""
    for path in folder.rglob(TEMPORARY_PREFIX + "*"):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > _STALE_SECONDS:
                path.unlink()


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
