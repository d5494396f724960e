"""Arrow columns as numpy arrays: numbers, bools, and lists of equal length, nested or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from assay.data.checks import package
from assay.errors import DataError

Array = np.ndarray[Any, np.dtype[Any]]


def require_number_types(path: Path, schema: Any, names: Sequence[str]) -> None:
    """Refuse all non-numeric columns, in one error."""
    types = {name: schema.field(name).type for name in names}
    wrong = {name: kind for name, kind in types.items() if not _is_number(kind)}
    if wrong:
        right = [name for name in schema.names if _is_number(schema.field(name).type)]
        raise DataError(
            f"data {path}, column {', '.join(map(repr, wrong))}",
            expected="numbers, bools, or lists of them",
            got=", ".join(map(str, wrong.values())),
            remedy=f"leave it out: columns={right}; or write it as numbers"
            if right
            else "write columns of numbers",
        )


def numbers(path: Path, name: str, column: Any, first: Array | None) -> Iterator[Array]:
    """Yields the non-empty chunks of a column as arrays. Each chunk must have the type of the array `first`,
    and its rows must have the shape of the rows of `first`. If `first` is None, the first non-empty chunk is
    used as `first`. Raises DataError.
    """
    row = 0
    for chunk in column.chunks:
        if not len(chunk):
            continue
        array = _Column(path, name, row).array(chunk, 1)
        first = array if first is None else first
        if array.shape[1:] != first.shape[1:]:
            raise _uneven(path, name, row, f"shape {first.shape[1:]}, as rows before", f"{array.shape[1:]}")
        if array.dtype != first.dtype:
            raise DataError(
                f"data {path}, column {name!r}",
                expected=f"{first.dtype}, as in files before",
                got=array.dtype,
                remedy="write all files with the same types",
            )
        yield array
        row += len(array)


class _Column:
    """One chunk of a column. `start` is the row of the file at which the chunk begins, for error messages."""

    def __init__(self, path: Path, name: str, start: int) -> None:
        self._path, self._name, self._start = path, name, start

    def array(self, values: Any, each: int) -> Array:
        """Convert the Arrow array `values` to a numpy array. `values` holds `each` elements for each row of
        the column.
        """
        arrow = package("pyarrow", "pyarrow", "columns")
        shape = getattr(values.type, "shape", None)  # only Arrow's tensor types have a shape
        if isinstance(values.type, arrow.BaseExtensionType):
            values = values.storage
        self._require_no_nulls(values, each)
        kind = values.type
        if not _is_list(kind):
            array: Array = values.to_numpy(zero_copy_only=False)
            return array
        size = self._length(values, each)
        inner = self.array(values.flatten(), each * size)
        return inner.reshape(len(values), *(shape or [size]), *inner.shape[1:])

    def _length(self, lists: Any, each: int) -> int:
        """The common length of the lists. Raises DataError if the lengths differ or are 0."""
        compute = package("pyarrow.compute", "pyarrow", "columns")
        lengths = compute.list_value_length(lists).to_numpy(zero_copy_only=False)
        other = np.flatnonzero(lengths != lengths[0])
        if other.size or not lengths[0]:
            index = int(other[0]) if other.size else 0
            row = self._start + index // each
            expected = f"lists of {lengths[0]}, as in the first row" if other.size else "lists with elements"
            raise _uneven(self._path, self._name, row, expected, f"a list of {lengths[index]}")
        return int(lengths[0])

    def _require_no_nulls(self, values: Any, each: int) -> None:
        if values.null_count:
            missing = values.is_null().to_numpy(zero_copy_only=False)
            raise DataError(
                f"data {self._path}, column {self._name!r}, row {self._start + int(missing.argmax()) // each}",
                expected="a number",
                got=f"null ({values.null_count} of {len(values)} are)",
                remedy="fill it or drop the row, or leave the column out by columns=[…]",
            )


def _uneven(path: Path, name: str, row: int, expected: str, got: str) -> DataError:
    remedy = "pad rows by assay.data.padded, or leave the column out by columns=[…]"
    return DataError(f"data {path}, column {name!r}, row {row}", expected=expected, got=got, remedy=remedy)


def _is_list(kind: Any) -> bool:
    types = package("pyarrow.types", "pyarrow", "columns")
    return bool(types.is_fixed_size_list(kind) or types.is_list(kind) or types.is_large_list(kind))


def _is_number(kind: Any) -> bool:
    arrow = package("pyarrow", "pyarrow", "columns")
    while isinstance(kind, arrow.BaseExtensionType) or _is_list(kind):
        kind = kind.value_type if _is_list(kind) else kind.storage_type
    types = arrow.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))
