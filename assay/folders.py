"""Creates and tests a command's output folder before the command begins to wait or to compute."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from assay.errors import NotMade, ResultError


def require_writable(folder: Path) -> None:
    """Make a folder, and check that files can be written there. Raises ResultError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ResultError(
            f"output folder {folder}",
            expected="a folder to write into",
            got=error.strerror or type(error).__name__,
            remedy="name another with --output",
        ) from error


def require_new(folder: Path) -> None:
    """Check that a folder is empty, or that it does not exist and can be made. Does not make it. Raises NotMade."""
    place = folder.absolute()
    try:
        if os.path.lexists(place) and (not place.is_dir() or any(place.iterdir())):
            raise NotMade(
                f"output folder {folder}",
                expected="a new or empty folder",
                got="one with files" if place.is_dir() else "a file",
                remedy="name another with --output, or move it away; nothing was written",
            )
        while not place.exists():
            place = place.parent
        with tempfile.TemporaryDirectory(dir=place):
            pass
    except OSError as error:
        raise NotMade(
            f"output folder {folder}",
            expected="a place that can be written to",
            got=error.strerror or type(error).__name__,
            remedy="name another with --output",
        ) from error
