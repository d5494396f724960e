"""The compiled hasher beside this file, if the package's build made one: a plain C ABI, loaded by ctypes.

`setup.py` compiles native/sha256.cpp where there is a C++ compiler. It is used where the processor has instructions for
SHA-256 and after it has given hashlib's digests; everywhere else `hashing.py` stays with hashlib. Nothing of torch.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

RowHasher = Callable[[int, NDArray[np.uint8]], bytes]
"""SHA-256(prefix || row) for every row of a C-contiguous `[count, width]` array; `count * 32` bytes in row order."""

# Around every length at which padding takes another block, chunks and nodes among them.
_WIDTHS = (1, 54, 55, 62, 63, 64, 65, 118, 119, 126, 127, 128, 1023, 1024)
_COUNTS = (1, 3, 4, 9)  # whole groups of rows, and what is left of them


@cache
def row_hasher() -> RowHasher | None:
    """The compiled hasher, self-tested in this process; None where there is none or its digests are not hashlib's."""
    for suffix in EXTENSION_SUFFIXES:
        path = Path(__file__).with_name(f"_native{suffix}")
        if path.is_file():
            try:
                found = load(path)
            except (OSError, AttributeError):  # built for another machine, or from older sources
                return None
            return found if found is not None and is_right(found) else None
    return None


def load(path: Path) -> RowHasher | None:
    """A library's hasher, untried; None if this processor cannot run it. Raises OSError, AttributeError for others."""
    native = ctypes.CDLL(str(path))
    native.assay_sha256_supported.restype = ctypes.c_int32
    native.assay_sha256_rows.restype = None
    native.assay_sha256_rows.argtypes = (
        ctypes.c_uint8,
        ctypes.c_void_p,
        ctypes.c_int64,
        ctypes.c_int64,
        ctypes.c_void_p,
    )
    if not native.assay_sha256_supported():
        return None

    def hash_rows(prefix: int, rows: NDArray[np.uint8]) -> bytes:
        count, width = rows.shape
        digests = np.empty(32 * count, np.uint8)
        native.assay_sha256_rows(prefix, rows.ctypes.data, count, width, digests.ctypes.data)
        return digests.tobytes()

    return hash_rows


def is_right(hasher: RowHasher) -> bool:
    """Whether a hasher gives hashlib's digests for rows of every kind that it tells apart."""
    for width in _WIDTHS:
        for count in _COUNTS:
            # Steps of 37 modulo 251 give neighbouring rows, blocks and words other bytes.
            numbers = np.arange(count * width, dtype=np.int64) * 37 + width + count
            rows = (numbers % 251).astype(np.uint8).reshape(count, width)
            due = b"".join([sha256(b"\x01" + row.tobytes()).digest() for row in rows])
            if hasher(1, rows) != due:
                return False
    return True
