"""A folder of results: `manifest.json`, and one part per chunk, from `parts/00000.parquet` on. All files are
written atomically.

A part that has its final name is complete, so a resumed sweep only needs to list the parts. Two sweeps of one
question in one folder write the same bytes, so they do not conflict. The manifest is written first and
replaced atomically, so rows never exist without their question.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from protocol.commitments.atomic import TEMPORARY_PREFIX, remove_stale, write_atomically
from sim.errors import ResultsError
from sim.results import manifest

REPORT: Final = "report.html"
_PARTS: Final = "parts"


class Folder:
    """A folder of results and its manifest. The first command that plays rows in the folder writes the manifest."""

    def __init__(self, path: Path, about: Mapping[str, Any]) -> None:
        self.path = path
        self.manifest = about

    @classmethod
    def open(cls, path: Path, about: Mapping[str, Any], *, fresh: bool = False) -> Folder:
        """Create or resume a folder for the question in `about`. If the folder holds results of another
        question, `fresh` replaces them.

        Resuming keeps the existing manifest and updates only one entry in it, the location of the study's
        file. Raises ResultsError if the folder cannot be written, if its manifest is not valid, if it has no
        manifest but other files, or, without `fresh`, if it holds results of another question.
        """
        folder = cls(path, about)
        there = path / manifest.NAME
        try:
            kept = manifest.read(there) if there.exists() else None
            if kept is None:
                _only_ours(path)
            elif other := manifest.difference(kept, about):
                if not fresh:
                    raise ResultsError(
                        f"{path}: expected results of this question, got those of another: {other}; "
                        f"give another --out, or --fresh to replace them"
                    )
                folder._clear()
            else:
                folder.manifest = {**kept, "source": about["source"]}
            if folder.manifest != kept:
                write_atomically(there, json.dumps(folder.manifest, indent=2).encode() + b"\n")
            (path / _PARTS).mkdir(exist_ok=True)
            remove_stale(path)
        except OSError as error:
            raise _unwritable(path, error) from error
        return folder

    @classmethod
    def at(cls, path: Path) -> Folder:
        """Open an existing folder. Raises ResultsError if it has no valid manifest."""
        return cls(path, manifest.read(path / manifest.NAME))

    def part(self, number: int) -> Path:
        """Path of a chunk's rows."""
        return self.path / _PARTS / f"{number:05}.parquet"

    def missing(self) -> list[int]:
        """Numbers of the chunks whose rows are missing."""
        return [number for number in range(self.manifest["parts"]) if not self.part(number).exists()]

    def parts(self) -> Iterator[Path]:
        """All parts in order. Raises ResultsError if one is missing."""
        missing = self.missing()
        if missing:
            raise ResultsError(
                f"{self.path}: expected {self.manifest['parts']} parts, got {self.manifest['parts'] - len(missing)}; "
                f"run the same command again to play the others"
            )
        return (self.part(number) for number in range(self.manifest["parts"]))

    def write(self, number: int, rows: bytes) -> None:
        """Write the rows of a chunk. Raises ResultsError if that fails."""
        try:
            write_atomically(self.part(number), rows)
        except OSError as error:
            raise _unwritable(self.path, error) from error

    def _clear(self) -> None:
        """Remove only the report and the rows, which `sim` wrote. The manifest is replaced afterwards."""
        (self.path / REPORT).unlink(missing_ok=True)
        for path in (self.path / _PARTS).glob("*.parquet"):
            path.unlink()


def _only_ours(path: Path) -> None:
    """Raise ResultsError if a folder has anything in it except what an interrupted first write of the
    manifest may leave.
    """
    if path.exists() and any(not found.name.startswith(TEMPORARY_PREFIX) for found in path.iterdir()):
        raise ResultsError(
            f"{path}: expected an empty folder or one of results, got one with other files; give another --out"
        )


def _unwritable(path: Path, error: OSError) -> ResultsError:
    return ResultsError(
        f"{path}: expected a folder that can be written, got {error.strerror or error}; give another --out"
    )
