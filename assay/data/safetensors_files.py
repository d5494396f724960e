"""Reader of `.safetensors`: the library checks the file, and numpy maps each tensor in it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from assay.data.checks import Array, Arrays, chosen, unreadable
from assay.data.numpy_files import mapped
from assay.errors import DataError

TYPES: Final = {
    "BOOL": "?",
    "U8": "u1",
    "I8": "i1",
    "U16": "<u2",
    "I16": "<i2",
    "U32": "<u4",
    "I32": "<i4",
    "U64": "<u8",
    "I64": "<i8",
    "F16": "<f2",
    "F32": "<f4",
    "F64": "<f8",
}
"""The safetensors types that are read, and numpy's name for each of them."""


def read_safetensors(path: Path, wanted: Sequence[str] | None) -> Arrays:
    """Map the tensors of a file. Raises DataError."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            names = sorted(file.keys())
        with path.open("rb") as raw:
            length = int.from_bytes(raw.read(8), "little")
            header = json.loads(raw.read(length))
    except (SafetensorError, OSError, ValueError) as error:
        raise unreadable(path, "a safetensors file", error) from error
    return {name: _tensor(path, name, header[name], 8 + length) for name in chosen(path, names, wanted)}


def _tensor(path: Path, name: str, entry: dict[str, object], begin: int) -> Array:
    kind = str(entry["dtype"])
    if kind not in TYPES:
        raise DataError(
            f"data {path}, array {name!r}",
            expected=f"one of {', '.join(TYPES)}",
            got=kind,
            remedy="save it as F32, or choose others by columns=[…]",
        )
    offsets, shape = entry["data_offsets"], entry["shape"]
    assert isinstance(offsets, list)
    assert isinstance(shape, list)
    return mapped(path, name, np.dtype(TYPES[kind]), tuple(shape), begin + offsets[0])
