"""Readers of Parquet files, and of datasets that Hugging Face's `datasets` saved to disk, with pyarrow.

A saved dataset is a folder with `state.json`, which names its Arrow stream files. These are mapped while they
are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from assay.data.checks import Arrays, chosen, package, require_file, require_room, unreadable
from assay.data.columns import numbers, require_number_types
from assay.errors import DataError
from protocol.node.documents import parse_json

STATE: Final = "state.json"
DICT: Final = "dataset_dict.json"
"""The file that marks a folder of several datasets, each in its own subfolder."""
WIDTHS: Final = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4}
"""Bytes per element in memory, by the type of the Parquet column; 8 for other numeric types."""


def read_parquet(files: Sequence[Path], wanted: Sequence[str] | None, most: int) -> Arrays:
    """Read columns of Parquet files, and concatenate the files in order. The columns are those that `wanted`
    names, or all columns of the first file if `wanted` is None. Every file must have these columns, with the
    same types. Raises DataError, PackageMissing.
    """
    arrow = package("pyarrow", "pyarrow", "Parquet files")
    parquet = package("pyarrow.parquet", "pyarrow", "Parquet files")
    names: list[str] | None = None
    declared = 0
    for path in files:
        require_file(path)
        try:
            with parquet.ParquetFile(path) as file:
                schema, metadata = file.schema_arrow, file.metadata
                names = _names(path, schema, names or wanted)
                declared += sum(_declared(metadata, set(names)))
        except (arrow.ArrowException, OSError, ValueError) as error:
            raise unreadable(path, "a Parquet file", error) from error
        require_room(path, declared, most)
    return _joined(_tables(files, names or []))


def read_saved(folder: Path, wanted: Sequence[str] | None) -> Arrays:
    """Read the columns of a saved dataset. Raises DataError, PackageMissing."""
    arrow = package("pyarrow", "pyarrow", "datasets of Hugging Face")
    parts = []
    names: list[str] | None = None
    for path in _saved_files(folder):
        require_file(path)
        try:
            with arrow.memory_map(str(path)) as source, arrow.ipc.open_stream(source) as stream:
                names = _names(path, stream.schema, names or wanted)
                parts.append((path, stream.read_all().select(names)))
        except (arrow.ArrowException, OSError, ValueError) as error:
            raise unreadable(path, "a stream of Arrow", error) from error
    return _joined(iter(parts))


def _names(path: Path, schema: Any, wanted: Sequence[str] | None) -> list[str]:
    """The names of the columns to read. Refuses columns that are not numeric."""
    names = chosen(path, schema.names, wanted)
    require_number_types(path, schema, names)
    return names


def _declared(metadata: Any, names: set[str]) -> Iterator[int]:
    """Yields one upper bound, in bytes of memory, for each column of each row group, if the column belongs to
    one of `names`. The bounds follow from the counts that the file declares.
    """
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            column = metadata.row_group(group).column(number)
            path = column.path_in_schema
            if any(path == name or path.startswith(f"{name}.") for name in names):
                yield column.num_values * WIDTHS.get(column.physical_type, 8)


def _tables(files: Sequence[Path], names: Sequence[str]) -> Iterator[tuple[Path, Any]]:
    arrow, parquet = package("pyarrow", "pyarrow", ""), package("pyarrow.parquet", "pyarrow", "")
    for path in files:
        try:
            with parquet.ParquetFile(path, memory_map=True) as file:
                table = file.read(columns=list(names))
        except (arrow.ArrowException, OSError, ValueError) as error:
            raise unreadable(path, "a Parquet file", error) from error
        yield path, table


def _joined(tables: Iterator[tuple[Path, Any]]) -> Arrays:
    """The columns of all tables, concatenated into new arrays [rows, …]."""
    parts: dict[str, list[np.ndarray[Any, Any]]] = {}
    for path, table in tables:
        for name in table.column_names:
            found = parts.setdefault(name, [])
            found += numbers(path, name, table.column(name), found[0] if found else None)
    return {name: np.concatenate(arrays) if arrays else np.empty(0) for name, arrays in parts.items()}


def _saved_files(folder: Path) -> list[Path]:
    """The data files that the state of a saved dataset names, in the order of the state."""
    path = folder / STATE
    try:
        state = parse_json(path.read_bytes())
        names = [str(one["filename"]) for one in state["_data_files"]]
        indices = state.get("_indices_data_files")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise unreadable(path, "the state of a dataset that save_to_disk wrote", error) from error
    if indices:
        remedy = "call .flatten_indices() on the dataset, and save it again"
        raise DataError(
            f"data {folder}", expected="rows in their order", got="rows by indices", remedy=remedy
        )
    if not names or any(Path(name).name != name for name in names):
        got = "no file" if not names else "a name that lies elsewhere"
        raise DataError(
            f"data {path}", expected="names of files in the folder", got=got, remedy="save it again"
        )
    return [folder / name for name in names]
