"""Rows of a folder, column by column: read when first asked for, so that memory holds what is used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sim.errors import ResultsError
from sim.mechanism.arrays import Floats
from sim.results.folder import Folder


class Rows(Mapping[str, Floats]):
    """A study's `Table` over all parts of a complete folder, in order of points and runs. Missing measures are NaN.

    Raises ResultsError when a part is missing or damaged.
    """

    def __init__(self, folder: Folder) -> None:
        self._parts = [_opened(path) for path in folder.parts()]
        self._names = list(dict.fromkeys(name for part in self._parts for name in part.schema_arrow.names))
        self._read: dict[str, Floats] = {}

    def __getitem__(self, name: str) -> Floats:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._read:
            self._read[name] = np.concatenate([_column(part, name) for part in self._parts])
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    @property
    def count(self) -> int:
        """How many rows there are."""
        return sum(part.metadata.num_rows for part in self._parts)


def arrow(folder: Folder) -> pa.Table:
    """All rows as one Arrow table. Raises ResultsError as `Rows` does."""
    tables = [_opened(path).read() for path in folder.parts()]
    return pa.concat_tables(tables, promote_options="default")


def _opened(path: Path) -> Any:
    try:
        return pq.ParquetFile(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise ResultsError(
            f"{path}: expected rows as Parquet, got {error}; remove the file and run the same command again"
        ) from error


def _column(part: Any, name: str) -> Floats:
    if name not in part.schema_arrow.names:
        return np.full(part.metadata.num_rows, np.nan)
    values: Floats = part.read(columns=[name]).column(0).to_numpy()
    return values.astype(np.float64, copy=False)
