"""What a process that trains or simulates sets up for itself: how it takes memory, and how it imports.

Both are settings of a whole process, so only entry points of programs choose them, never a library that is imported.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3
"""Of glibc's mallopt(3)."""

MAPPED = 1 << 25
"""Bytes from which a block is a separate mapping: 32 MiB, the most that glibc takes."""
KEPT = 1 << 28
"""Free bytes that a process keeps at the end of its heap."""


def keep_memory() -> bool:
    """Reuse freed memory rather than give it back and take it again; whether the system's library can be told so.

    By itself glibc maps every block above 128 KiB again until blocks of its size have been freed, and returns what is
    free at the heap's end after each step. A step's values come and go by the gigabyte, and each page that is taken
    is a fault, and zeroed: 832,000 faults up to the first step of a GPT of 50M, 484,000 with this and with loading
    that shares equal tensors; a simulated round of 4,096 markets spent a third of its time on them. Nothing is held
    that is not freed by the program; the most memory in use becomes less, for blocks are reused instead of mapped
    beside each other.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:  # another C library
        return False
    return bool(mallopt(M_MMAP_THRESHOLD, MAPPED)) and bool(mallopt(M_TRIM_THRESHOLD, KEPT))


@contextmanager
def importing() -> Iterator[None]:
    """For imports of heavy libraries: nothing of theirs is garbage, so it is not looked for, then or later.

    A collection walks all objects that modules consist of: 230,000 with torch and the client of the chain, 0.13 s each
    time.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        if was:
            gc.enable()
