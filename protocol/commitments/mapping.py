"""Read-only memory maps of files. Unlike the maps of Python's `mmap`, they keep no descriptor open.

A bundle may have tens of thousands of tensors, each in its own file, and a process may usually open 1,024
files.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import weakref
from pathlib import Path

MOST_MAPS = 1 << 15
"""Limit on the maps of this process: half of the system's (`vm.max_map_count`, usually 65,530). Every library and
every large piece of memory takes a map too.
"""
MAPS_EACH = MOST_MAPS // 8
"""Limit on the maps of one bundle. A solver keeps in memory the bundles of all tasks that it has won. It bids
on another task only if the maps of these bundles leave room for the other task's bundle (`solver.trainings`).
A verifier keeps four tasks in memory (`verifier.material.IN_MEMORY`), and may load others meanwhile.
"""

_FAILED = ctypes.c_void_p(-1).value
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.mmap.argtypes = (
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_long,
)
_LIBC.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)


class Maps:
    """The memory maps of a process. There are at most `most`, but threads that map files at the same moment
    may exceed this limit by one map each. A file that is mapped already is not mapped again, even if it is
    opened by the path of another link. Callable from any thread.
    """

    def __init__(self, most: int = MOST_MAPS) -> None:
        self._most = most
        # By device, inode and size. A mapped file keeps its inode, so no other file gets its number.
        self._of_file: weakref.WeakValueDictionary[tuple[int, int, int], ctypes.Array[ctypes.c_char]] = (
            weakref.WeakValueDictionary()
        )
        # No lock: a map may end while the garbage collector interrupts this thread anywhere.
        self._live: set[int] = set()

    def __len__(self) -> int:
        """The number of maps that have not ended."""
        return len(self._live)

    def map(self, path: Path) -> memoryview | None:
        """The read-only bytes of a file that is not empty. None if the file is not mapped yet and there are
        too many maps.

        The map ends when the last object that shares its bytes ends. torch can write to the bytes, although
        they are read-only. Such a write ends the process, as it would with Python's `mmap`. Raises OSError.
        """
        with open(path, "rb") as file:
            about = os.fstat(file.fileno())
            size, key = about.st_size, (about.st_dev, about.st_ino, about.st_size)
            mapped = self._of_file.get(key)
            if mapped is not None:
                return memoryview(mapped).cast("B").toreadonly()
            if len(self._live) >= self._most:
                return None
            address = _LIBC.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, file.fileno(), 0)
            if address == _FAILED:
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number), str(path))
        array = (ctypes.c_char * size).from_address(address)
        self._live.add(address)
        # Not at exit: other threads may still read.
        weakref.finalize(array, self._end, address, size).atexit = False
        self._of_file[key] = array
        return memoryview(array).cast("B").toreadonly()

    def _end(self, address: int, size: int) -> None:
        self._live.discard(address)  # first: once it is unmapped, another map may get the address
        _LIBC.munmap(address, size)
