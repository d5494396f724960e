"""The committed dataset, and an example of the batch that the objective sees."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from protocol.capture.errors import CaptureError, Problems
from protocol.capture.inputs.checks import (
    drawn_again,
    item_raises,
    no_item,
    no_number,
    other_names,
    other_shape,
    other_type,
    require_dataset,
)
from protocol.capture.types import WIDENED, as_committed, as_seen_by_torch, stored_as

READ_TWICE = 16
"""The number of items that are read twice. A random flip with probability 1/2 goes unnoticed in 16 items with
probability 2^-16.
"""


def committed(dataset: Any) -> dict[str, Tensor]:
    """The tensors to commit: f32, u8, i32 or bool, with one row per example.

    `dataset` has one of two forms. The first is a mapping from names to tensors or numpy arrays. The second
    is a map-style dataset, such as torch's or Hugging Face's. Its items are dicts or tuples, and all items
    have the same shapes; the entries of a tuple are named 0, 1, …. Half-precision floats become f32; int64,
    int16, int8 and uint16 become i32. The contents are copied, except those of contiguous read-only
    memory-mapped numpy arrays that need no conversion. Such arrays may be larger than memory.

    Raises `CaptureError` for anything `require_dataset` refuses, for items that raise an error or are of
    another kind, for items with unequal names, shapes or types, for non-numeric values, and for items that
    differ when they are read again, such as randomly cropped images.
    """
    items = _stacked(dataset) if _is_map_style(dataset) else dataset
    tensors = {name: _tensor(x) for name, x in items.items()} if isinstance(items, Mapping) else items
    require_dataset(tensors)
    return {name: _kept(items[name], t) for name, t in tensors.items()}


def example_batch(dataset: Mapping[str, Tensor], batch_size: int) -> dict[str, Tensor]:
    """Zeros with the types and shapes of a batch of the committed `dataset`, as the objective sees it."""
    return {
        name: torch.zeros((batch_size, *t.shape[1:]), dtype=as_seen_by_torch(t.dtype))
        for name, t in dataset.items()
    }


def _tensor(x: Any) -> Any:
    """`x` as a tensor, or `x` itself if it cannot be converted. A tensor of a type that programs lack is
    widened if programs have a wider type that holds the same numbers exactly.
    """
    if isinstance(x, np.ndarray):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # torch warns about read-only arrays
                x = torch.from_numpy(x if x.dtype.isnative else x.astype(x.dtype.newbyteorder("=")))
        except (TypeError, ValueError):
            return x
    return x.to(WIDENED[x.dtype]) if isinstance(x, Tensor) and x.dtype in WIDENED else x


def _kept(x: Any, t: Tensor) -> Tensor:
    """The tensor to commit: a copy, except for contiguous read-only memory-mapped data that need no conversion."""
    mapped = isinstance(x, np.memmap) and x.mode == "r" and t.is_contiguous()
    if not mapped or stored_as(t.dtype) is not t.dtype or (t.is_floating_point() and bool(t.min().isnan())):
        return as_committed(t)
    return t


# ------------------------------------------------------------------ map-style datasets


def _is_map_style(dataset: Any) -> bool:
    """Whether the dataset has numbered items, like torch's `Dataset`, and is neither a container nor a tensor."""
    kind = type(dataset)
    return not isinstance(dataset, Mapping | Tensor | np.ndarray | list | tuple | str | bytes) and (
        hasattr(kind, "__getitem__") and hasattr(kind, "__len__")
    )


def _stacked(dataset: Any) -> dict[str, Tensor]:
    """All items, stacked by name: one row per item. The first `READ_TWICE` items are read twice, to find
    items that change from one reading to the next.
    """
    found: dict[str, Tensor] = {}
    problems = Problems()
    count = len(dataset)
    for number in range(count):
        item = _item(dataset, number)
        row = dict(_row(item, number, problems))
        if number < READ_TWICE:
            row = {name: t.clone() for name, t in row.items()}  # the dataset may use its memory again
            again = dict(_row(_item(dataset, number), number, problems))
            problems.add(
                drawn_again(number, name)
                for name in row.keys() & again.keys()
                if not _same(row[name], again[name])
            )
        if not found:
            found = {name: torch.empty((count, *t.shape), dtype=t.dtype) for name, t in row.items()}
        if row.keys() != found.keys():
            problems.add([other_names(number, row, found)])
        for name in row.keys() & found.keys():
            if row[name].shape != found[name].shape[1:]:
                problems.add([other_shape(number, name, row[name].shape, found[name].shape[1:])])
            elif not _fits(row[name], found[name].dtype):
                problems.add([other_type(number, name, row[name].dtype, found[name].dtype)])
            else:
                found[name][number] = row[name]
        problems.raise_any()
    return found


def _item(dataset: Any, number: int) -> Any:
    try:
        return dataset[number]
    except Exception as error:
        raise CaptureError([item_raises(number, error)]) from error


def _same(a: Tensor, b: Tensor) -> bool:
    """Whether types, shapes and elements are the same; NaN equals NaN."""
    return a.dtype == b.dtype and a.shape == b.shape and bool(((a == b) | (a.isnan() & b.isnan())).all())


def _fits(t: Tensor, dtype: torch.dtype) -> bool:
    """Whether an item's tensor has the type of its column, or holds integers that a column of floats can
    represent exactly.
    """
    if t.dtype == dtype or not dtype.is_floating_point or t.is_floating_point():
        return t.dtype == dtype
    return bool((t.to(dtype).to(t.dtype) == t).all())


def _row(item: Any, number: int, problems: Problems) -> Iterator[tuple[str, Tensor]]:
    """The numeric values of an item, by name."""
    if isinstance(item, Mapping):
        parts = dict(item)
    elif isinstance(item, tuple | list):
        parts = {str(place): x for place, x in enumerate(item)}
    else:
        raise CaptureError([no_item(number, item)])
    for name, x in parts.items():
        try:
            yield str(name), _tensor(torch.as_tensor(x))
        except (TypeError, ValueError, RuntimeError):
            problems.add([no_number(number, name, x)])
