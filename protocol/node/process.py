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

    By default glibc maps every block above 128 KiB separately until blocks of its size have been freed, and returns
    free memory at the heap's end after each step. A step allocates and frees gigabytes, and each new page costs a
    fault and is zeroed: 832,000 faults up to the first step of a GPT of 50M, 484,000 with this and with loading that
    shares equal tensors; a simulated round of 4,096 markets spent a third of its time on them. Peak memory becomes
    smaller, because blocks are reused instead of mapped beside each other.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:  # another C library
        return False
    return bool(mallopt(M_MMAP_THRESHOLD, MAPPED)) and bool(mallopt(M_TRIM_THRESHOLD, KEPT))


@contextmanager
def importing() -> Iterator[None]:
    """For imports of heavy libraries: their objects never become garbage, so the collector skips them, now and later.

    A collection walks all objects of all modules: 230,000 with torch and the client of the chain, 0.13 s each time.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        if was:
            gc.enable()
