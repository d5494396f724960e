"""Gives access to the rows of a results folder, one column at a time. A column is read when it is first used,
so memory holds only the columns that were used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sim.errors import ResultsError
from sim.mechanism.arrays import Floats
from sim.results.folder import Folder


class _Part(NamedTuple):
    """Metadata of a part. The part's file is not kept open between reads, because a sweep can have more parts
    than a process may have open files.
    """

    path: Path
    names: tuple[str, ...]
    rows: int

    @classmethod
    def at(cls, path: Path) -> _Part:
        with _opened(path) as file:
            return cls(path, tuple(file.schema_arrow.names), file.metadata.num_rows)

    def column(self, name: str) -> Floats:
        if name not in self.names:
            return np.full(self.rows, np.nan)
        with _opened(self.path) as file:
            values: Floats = file.read(columns=[name]).column(0).to_numpy()
        return values.astype(np.float64, copy=False)


class Rows(Mapping[str, Floats]):
    """A study's `Table` over all parts of a complete folder, ordered by point and run. Missing measures are
    NaN.

    Raises ResultsError if a part is missing, damaged or unreadable. Damage in a column is found when that
    column is read.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder  # A temporary folder is removed when the last reference to it goes.
        self._parts = [_Part.at(path) for path in folder.parts()]
        self._names = list(dict.fromkeys(name for part in self._parts for name in part.names))
        self._read: dict[str, Floats] = {}

    def __getitem__(self, name: str) -> Floats:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._read:
            self._read[name] = np.concatenate([part.column(name) for part in self._parts])
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    @property
    def count(self) -> int:
        """Number of rows."""
        return sum(part.rows for part in self._parts)


def arrow(folder: Folder) -> pa.Table:
    """All rows as one Arrow table. Raises ResultsError as `Rows` does."""
    return pa.concat_tables([_whole(path) for path in folder.parts()], promote_options="default")


def _whole(path: Path) -> pa.Table:
    with _opened(path) as file:
        return file.read()


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a part for the body of a `with` statement. Raises ResultsError if the part cannot be opened, or if
    the body cannot read it.
    """
    try:
        with pq.ParquetFile(path) as file:
            yield file
    except (OSError, pa.ArrowException) as error:
        # Damage inside a file is an OSError too, but only errors of the system have an errno.
        if isinstance(error, MemoryError) or getattr(error, "errno", None) is not None:
            what, remedy = "a file that can be read", "let it be read"
        else:
            what, remedy = "rows as Parquet", "remove the file"
        raise ResultsError(
            f"{path}: expected {what}, got {' '.join(str(error).split())}; {remedy} and run the same command again"
        ) from error
