"""Checks that the readers share. They refuse missing names, non-numeric types, unequal lengths, and too
much data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np

from assay.errors import DataError, PackageMissing

Array = np.ndarray[Any, np.dtype[Any]]
Arrays = dict[str, Array]

MOST: Final = 1 << 34
"""Default limit on the bytes that a reader unpacks: 16 GiB. Mapped data does not count."""
NUMBERS: Final = "biuf"
"""Kinds of numpy types that are read: bool, int, unsigned int, float."""


def require_path(path: Path, expected: str) -> None:
    """Refuse a path that does not exist."""
    if not path.exists():
        raise DataError(f"data {path}", expected=expected, got="no such file", remedy="check the path")


def require_file(path: Path) -> None:
    """Refuse a path that is not a file, or that is an empty file."""
    require_path(path, "a file")
    if not path.is_file():
        got = "a folder" if path.is_dir() else "neither a file nor a folder"
        raise DataError(f"data {path}", expected="a file", got=got, remedy="name the file itself")
    if not path.stat().st_size:
        raise DataError(
            f"data {path}", expected="a file with data", got="an empty file", remedy="leave it out"
        )


def chosen(path: Path, names: Iterable[str], wanted: Sequence[str] | None) -> list[str]:
    """The names of the arrays to read from a file: all of them, or the wanted ones in the order wanted."""
    there = list(names)
    if not there:
        raise DataError(
            f"data {path}", expected="at least one array", got="none", remedy="leave the file out"
        )
    if wanted is None:
        return there
    if isinstance(wanted, str) or not wanted:
        raise DataError(
            "columns", expected="a list of names", got=repr(wanted), remedy="as in columns=['x', 'y']"
        )
    if missing := [name for name in wanted if name not in there]:
        raise DataError(
            f"data {path}",
            expected=f"an array {missing[0]!r}",
            got=_some(there),
            remedy="choose columns that are there",
        )
    return list(dict.fromkeys(wanted))


def require_numbers(path: Path, name: str, dtype: np.dtype[Any]) -> None:
    """Refuse an array of Python objects, text, dates, records or complex numbers."""
    if dtype.kind not in NUMBERS:
        raise DataError(
            f"data {path}, array {name!r}",
            expected="bool, integers or floats",
            got="Python objects, which only pickle could read" if dtype.hasobject else str(dtype),
            remedy="save it as numbers of one type, or choose others by columns=[…]",
        )


def require_bools(path: Path, name: str, array: Array) -> None:
    """Refuse bools stored as bytes other than 0 and 1: numpy treats them as True, but a root covers the exact
    bytes.
    """
    if array.size and int(array.view(np.uint8).max()) > 1:
        raise DataError(
            f"data {path}, array {name!r}",
            expected="bools of bytes 0 and 1",
            got=f"a byte {int(array.view(np.uint8).max())}",
            remedy="save it as u8, or write it again",
        )


SMALLER: Final = "choose fewer columns, give a larger most=, or save arrays uncompressed, which are mapped"


def require_room(path: Path, declared: int, most: int, remedy: str = SMALLER) -> None:
    """Refuse data before it is unpacked, if it would take more than `most` bytes according to its headers."""
    if declared > most:
        raise DataError(
            f"data {path}",
            expected=f"at most {most:,} bytes when unpacked",
            got=f"{declared:,}",
            remedy=remedy,
        )


def whole(path: Path, arrays: Mapping[str, Array]) -> Arrays:
    """Return the arrays if each is non-empty and all have the same number of rows. Raises DataError."""
    first = next(iter(arrays))
    for name, array in arrays.items():
        what = f"data {path}, array {name!r}"
        if not array.ndim or not array.size:
            raise DataError(
                what,
                expected="rows with elements",
                got=f"shape {array.shape}",
                remedy="leave it out, or choose others by columns=[…]",
            )
        if len(array) != len(arrays[first]):
            raise DataError(
                what,
                expected=f"{len(arrays[first])} rows, as {first!r} has",
                got=len(array),
                remedy="give all arrays one row for each example, or choose some by columns=[…]",
            )
    return dict(arrays)


def require_count(name: str, value: Any) -> int:
    """Return `value` if it is a whole number of at least 1. Raises DataError."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise DataError(
            name, expected="a whole number from 1 on", got=repr(value), remedy=f"give another {name}="
        )
    return int(value)


def package(name: str, distribution: str, what: str) -> Any:
    """Import an optional package. Raises PackageMissing."""
    try:
        return import_module(name)
    except ImportError as error:
        raise PackageMissing(
            what,
            expected=f"the package {distribution}",
            got=f"none that can be loaded: {error}",
            remedy="pip install 'assay[data]'",
        ) from error


def unreadable(path: Path, what: str, error: BaseException) -> DataError:
    """The DataError that reports an error of a file format's library."""
    said = str(error)[:200].replace("\n", " ")
    return DataError(
        f"data {path}", expected=what, got=f"{type(error).__name__}: {said}", remedy="write the file again"
    )


def _some(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:20])) + (", …" if len(names) > 20 else "")
