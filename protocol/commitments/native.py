"""The compiled hasher beside this file, if the package's build made one: a plain C ABI, loaded by ctypes.

`setup.py` compiles native/sha256.cpp where there is a C++ compiler. It is used where the processor has instructions
for SHA-256 and after it has given hashlib's digests; everywhere else `hashing.py` uses hashlib. Does not use torch.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

RowHasher = Callable[[int, NDArray[np.uint8]], bytes]
"""SHA-256(prefix || row) for every row of a C-contiguous `[count, width]` array; `count * 32` bytes in row order."""
SaltedRowHasher = Callable[[bytes, NDArray[np.uint8]], bytes]
"""Hash under a salt of 32 bytes (audit.md section 4) of every row of a `[count, width]` array, in row order. A
row's bytes are side by side and a multiple of 32; rows are any distance apart."""

Hasher = TypeVar("Hasher")

# Around every length at which padding takes another block, chunks and nodes among them.
_WIDTHS = (1, 54, 55, 62, 63, 64, 65, 118, 119, 126, 127, 128, 1023, 1024)
_COUNTS = (1, 3, 4, 9)  # whole groups of rows, and what is left of them
_SALTED_WIDTHS = (32, 64, 1024)


@cache
def row_hasher() -> RowHasher | None:
    """The compiled hasher, self-tested in this process; None where there is none or its digests are not hashlib's."""
    return _tried(load, is_right)


@cache
def salted_row_hasher() -> SaltedRowHasher | None:
    """`row_hasher` for rows under a salt."""
    return _tried(load_salted, is_right_salted)


def _tried(load: Callable[[Path], Hasher | None], is_right: Callable[[Hasher], bool]) -> Hasher | None:
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
    native.assay_sha256_rows.restype = None
    native.assay_sha256_rows.argtypes = (
        ctypes.c_uint8,
        ctypes.c_void_p,
        ctypes.c_int64,
        ctypes.c_int64,
        ctypes.c_void_p,
    )
    if not _is_supported(native):
        return None

    def hash_rows(prefix: int, rows: NDArray[np.uint8]) -> bytes:
        count, width = rows.shape
        digests = np.empty(32 * count, np.uint8)
        native.assay_sha256_rows(prefix, rows.ctypes.data, count, width, digests.ctypes.data)
        return digests.tobytes()

    return hash_rows


def load_salted(path: Path) -> SaltedRowHasher | None:
    """`load` for rows under a salt."""
    native = ctypes.CDLL(str(path))
    native.assay_sha256_salted_rows.restype = None
    native.assay_sha256_salted_rows.argtypes = (
        ctypes.c_char_p,
        ctypes.c_void_p,
        ctypes.c_int64,
        ctypes.c_int64,
        ctypes.c_int64,
        ctypes.c_void_p,
    )
    if not _is_supported(native):
        return None

    def hash_rows(salt: bytes, rows: NDArray[np.uint8]) -> bytes:
        count, width = rows.shape
        digests = np.empty(32 * count, np.uint8)
        native.assay_sha256_salted_rows(
            salt, rows.ctypes.data, count, width, rows.strides[0], digests.ctypes.data
        )
        return digests.tobytes()

    return hash_rows


def _is_supported(native: ctypes.CDLL) -> bool:
    native.assay_sha256_supported.restype = ctypes.c_int32
    return bool(native.assay_sha256_supported())


def is_right(hasher: RowHasher) -> bool:
    """Whether a hasher gives hashlib's digests for rows of every kind that it tells apart."""
    for width in _WIDTHS:
        for count in _COUNTS:
            rows = _pattern(count, width)
            due = b"".join([sha256(b"\x01" + row.tobytes()).digest() for row in rows])
            if hasher(1, rows) != due:
                return False
    return True


def is_right_salted(hasher: SaltedRowHasher) -> bool:
    """`is_right` for rows under a salt, of rows side by side and apart."""
    salt = _pattern(1, 32).tobytes()
    for width in _SALTED_WIDTHS:
        end = salt + width.to_bytes(32, "big")
        for count in _COUNTS:
            for rows in (_pattern(count, width), _pattern(3 * count, width)[::3]):
                pieces = ([row[i : i + 32].tobytes() for i in range(0, width, 32)] for row in rows)
                due = b"".join([sha256(salt + salt.join(row) + end).digest() for row in pieces])
                if hasher(salt, rows) != due:
                    return False
    return True


def _pattern(count: int, width: int) -> NDArray[np.uint8]:
    """Multiples of 37 modulo 251 give different bytes to neighbouring rows, blocks and words."""
    numbers = np.arange(count * width, dtype=np.int64) * 37 + width + count
    return (numbers % 251).astype(np.uint8).reshape(count, width)
