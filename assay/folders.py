"""Creates and tests a command's output folder before the command begins to wait."""

from __future__ import annotations

import tempfile
from pathlib import Path

from assay.errors import ResultError


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
