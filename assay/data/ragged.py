"""Rows of unequal lengths as arrays: padded to one length, or several packed into one row."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from assay.data.checks import NUMBERS, Array, Arrays, require_count
from assay.errors import DataError

NONE: Final = np.iinfo(np.int64).max
"""The value in `_first_fit` for "no row has exactly this much room"."""


def padded(rows: Iterable[Any], length: int | None = None, fill: float = 0) -> Arrays:
    """Pad rows to one length.

    Returns `x` [n, length, …], where `fill` follows each row, and `mask` bool [n, length], which is True for
    a row's own elements. A row is a list, array or tensor of numbers with at least one element. The shapes of
    the rows may differ only in the first axis, the length; `x` keeps the other axes. `length` defaults to the
    length of the longest row. The type of `x` is one that can hold all rows. Raises DataError, also for a row
    that is longer than `length`.
    """
    arrays = _arrays(rows)
    if length is None:
        length = max(map(len, arrays))
    else:
        _require_fits(arrays, require_count("length", length))
    x = _filled((len(arrays), length, *arrays[0].shape[1:]), arrays, fill)
    mask = np.zeros((len(arrays), length), np.bool_)
    for number, array in enumerate(arrays):
        x[number, : len(array)] = array
        mask[number, : len(array)] = True
    return {"x": x, "mask": mask}


def packed(rows: Iterable[Any], length: int, fill: float = 0) -> Arrays:
    """Pack several sequences into each row.

    Returns `x` [m, length, …], and `segment` and `position`, both int32 [m, length]. Each row of `x` holds
    sequences one after the other, and then `fill`. `segment` counts the sequences of a row from 1, and is 0
    for `fill`. `position` counts the elements of each sequence from 0.

    The mask `segment[:, :, None] == segment[:, None, :]` keeps attention inside a sequence. For causal
    attention, `position[:, :, None] >= position[:, None, :]` must hold too. Every element then attends at
    least to itself. The loss should count only where `segment > 0`. In next-token prediction, the target of
    an element is the next element, and the loss should count only where both have the same segment, other
    than 0.

    Sequences are placed in their order, each into the first row that has room (first fit), so the result is
    deterministic. No sequence is cut. Raises DataError, also for a sequence that is longer than `length`.
    """
    arrays = _arrays(rows)
    _require_fits(arrays, require_count("length", length))
    places, count = _first_fit([len(array) for array in arrays], length)
    x = _filled((count, length, *arrays[0].shape[1:]), arrays, fill)
    segment, position = np.zeros((count, length), np.int32), np.zeros((count, length), np.int32)
    last = [0] * count
    for array, (row, begin) in zip(arrays, places, strict=True):
        place = slice(begin, begin + len(array))
        last[row] += 1
        x[row, place], segment[row, place] = array, last[row]
        position[row, place] = np.arange(len(array), dtype=np.int32)
    return {"x": x, "segment": segment, "position": position}


def _first_fit(lengths: list[int], most: int) -> tuple[list[tuple[int, int]], int]:
    """The row and the offset of each sequence, and the number of rows.

    For each number `room`, a heap holds the rows that have exactly `room` elements left, and `first[room]` is
    the first of these rows.
    """
    first = np.full(most + 1, NONE)
    heaps: dict[int, list[int]] = {}
    places, count = [], 0
    for length in lengths:
        row = int(first[length:].min())
        if row == NONE:
            row, room = count, most
            count += 1
        else:
            room = length + int(first[length:].argmin())
            heapq.heappop(heaps[room])
            first[room] = heaps[room][0] if heaps[room] else NONE
        places.append((row, most - room))
        left = room - length
        heapq.heappush(heaps.setdefault(left, []), row)
        first[left] = heaps[left][0]
    return places, count


def _arrays(rows: Iterable[Any]) -> list[Array]:
    """The rows as arrays. All must have the same kind of number, and their shapes may differ only in the
    first axis. Raises DataError.
    """
    if isinstance(rows, str | bytes) or not isinstance(rows, Iterable):
        raise DataError(
            "rows", expected="rows of numbers", got=type(rows).__name__, remedy="pass a list of lists"
        )
    arrays = [_array(number, row) for number, row in enumerate(rows)]
    if not arrays:
        raise DataError("rows", expected="at least one row", got="none", remedy="pass some")
    kind, axes = _kind(arrays[0]), arrays[0].shape[1:]
    for number, array in enumerate(arrays):
        if _kind(array) != kind or array.shape[1:] != axes:
            raise DataError(
                f"row {number}",
                expected=f"{kind} with further axes {axes}, as in row 0",
                got=f"{_kind(array)} with {array.shape[1:]}",
                remedy="give all rows one type and shape, but for their lengths",
            )
    return arrays


def _array(number: int, row: Any) -> Array:
    try:
        array = np.asarray(row)
    except (ValueError, TypeError, RuntimeError, OverflowError) as error:
        raise _no_row(number, f"{type(error).__name__}: {str(error)[:200]}") from error
    if not array.ndim or not array.size:
        raise _no_row(number, "a single value" if not array.ndim else "an empty row")
    if array.dtype.kind not in NUMBERS:
        raise _no_row(number, f"a row of {array.dtype}")
    return array


def _no_row(number: int, got: str) -> DataError:
    return DataError(
        f"row {number}", expected="a row of numbers, one or more", got=got, remedy="leave it out, or mend it"
    )


def _kind(array: Array) -> str:
    return {"b": "bool", "f": "floats"}.get(array.dtype.kind, "integers")


def _filled(shape: tuple[int, ...], arrays: list[Array], fill: float) -> Array:
    """An array filled with `fill`, in a type that holds all rows."""
    dtype = np.result_type(*{array.dtype for array in arrays})
    if dtype.kind == "f" and arrays[0].dtype.kind != "f":
        remedy = "give all rows one type"
        raise DataError(
            "rows", expected="integers that one type holds", got="int64 and uint64", remedy=remedy
        )
    try:
        value = dtype.type(fill)
        right = dtype.kind == "f" or value == fill
    except (TypeError, ValueError, OverflowError):
        right = False
    if not right:
        raise DataError(
            "fill", expected=f"a value of {dtype}, the rows' type", got=repr(fill), remedy="give another"
        )
    return np.full(shape, fill, dtype)


def _require_fits(arrays: list[Array], length: int) -> None:
    for number, array in enumerate(arrays):
        if len(array) > length:
            raise DataError(
                f"row {number}",
                expected=f"at most {length} elements, as length= says",
                got=len(array),
                remedy="cut it, or give a larger length",
            )
