"""Loads the compiled hasher that lies next to this file, if the package's build made one. The hasher has a
plain C ABI and is called by ctypes.

`setup.py` compiles native/sha256.cpp if there is a C++ compiler. The hasher is used if the processor has
SHA-256 instructions and the digests of a self-test equal hashlib's; otherwise `hashing.py` uses hashlib. Does
not use torch.
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
"""Takes a prefix byte and a C-contiguous array of rows, `[count, width]`. Returns SHA-256(prefix || row) of
every row, in row order: `count * 32` bytes.
"""
SaltedRowHasher = Callable[[bytes, NDArray[np.uint8]], bytes]
"""The hash of every row of a `[count, width]` array under a 32-byte salt (audit.md section 4), in row order.
`width` is a multiple of 32. The bytes of a row must be contiguous; rows may be any distance apart.
"""

Hasher = TypeVar("Hasher")

# Lengths around those at which padding needs one more block, and the lengths of chunks and nodes.
_WIDTHS = (1, 54, 55, 62, 63, 64, 65, 118, 119, 126, 127, 128, 1023, 1024)
_COUNTS = (1, 3, 4, 9)  # whole groups of rows, and remainders
_SALTED_WIDTHS = (32, 64, 1024)


@cache
def row_hasher() -> RowHasher | None:
    """The compiled hasher, self-tested in this process. None if the build made none, if it cannot be loaded,
    if the processor lacks SHA-256 instructions, or if the hasher's digests differ from hashlib's.
    """
    return _tried(load, is_right)


@cache
def salted_row_hasher() -> SaltedRowHasher | None:
    """Like `row_hasher`, for rows under a salt."""
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
    """The hasher of the library at `path`, not yet tested. None if this processor cannot run it. Raises
    OSError or AttributeError if the file is not this library.
    """
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
    """Like `load`, for rows under a salt."""
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
    """Whether a hasher's digests equal hashlib's. The hasher treats some lengths and numbers of rows
    differently; the test includes each of these cases.
    """
    for width in _WIDTHS:
        for count in _COUNTS:
            rows = _pattern(count, width)
            due = b"".join([sha256(b"\x01" + row.tobytes()).digest() for row in rows])
            if hasher(1, rows) != due:
                return False
    return True


def is_right_salted(hasher: SaltedRowHasher) -> bool:
    """Like `is_right`, for rows under a salt, both without and with gaps between the rows."""
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
    """Test rows in which neighbouring rows, blocks and words differ. Each number is its predecessor plus 37,
    modulo 251.
    """
    numbers = np.arange(count * width, dtype=np.int64) * 37 + width + count
    return (numbers % 251).astype(np.uint8).reshape(count, width)
