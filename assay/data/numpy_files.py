"""Readers of `.npy` and `.npz`. Arrays are mapped if the file stores them uncompressed and aligned, and
otherwise copied into memory. Nothing is unpickled.

numpy parses the headers. The size that a header declares is compared with the size of the file, or of the
archive's member, before memory is allocated.
"""

from __future__ import annotations

import lzma
import math
import zipfile
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Final, Literal

import numpy as np
from numpy.lib import format as npy

from assay.data.checks import Array, Arrays, chosen, require_bools, require_numbers, require_room, unreadable
from assay.errors import DataError

NAME: Final = "x"
"""The name given to the array of an `.npy` file."""
LOCAL_HEADER: Final = 30
"""Size in bytes of the fixed part of a member's header in a zip archive. The member's name and an extra field
follow the fixed part. The last four bytes of the fixed part give the lengths of the name and of the extra
field (APPNOTE 4.3.7).
"""
DAMAGED: Final = (
    *(
        zipfile.BadZipFile,
        zlib.error,
        lzma.LZMAError,
        EOFError,
        NotImplementedError,
        RuntimeError,
        ValueError,
    ),
    *(OSError, SyntaxError),
)
"""Errors that zipfile and numpy raise for files that have another format, are truncated or encrypted, or use
an unknown compression.
"""


def read_npy(path: Path, wanted: Sequence[str] | None) -> Arrays:
    """Map the array of an `.npy` file. Raises DataError."""
    chosen(path, [NAME], wanted)
    try:
        with path.open("rb") as file:
            shape, order, dtype = _header(file)
            begin = file.tell()
    except DAMAGED as error:
        raise unreadable(path, "a file that numpy.save wrote", error) from error
    _require_as_declared(path, NAME, dtype, shape, path.stat().st_size - begin)
    return {NAME: mapped(path, NAME, dtype, shape, begin, order)}


def read_npz(path: Path, wanted: Sequence[str] | None, most: int) -> Arrays:
    """Read the arrays of an `.npz` archive, unpacking at most `most` bytes. Raises DataError."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            twice = [name for name, count in Counter(one.filename for one in members).items() if count > 1]
            if twice:
                raise DataError(
                    *(f"data {path}, array {twice[0]!r}",),
                    expected="one array of a name",
                    got="several",
                    remedy="write the file again",
                )
            named = {one.filename.removesuffix(".npy"): one for one in members}
            names = chosen(path, named, wanted)
            packed = [named[name] for name in names if named[name].compress_type != zipfile.ZIP_STORED]
            require_room(path, sum(one.file_size for one in packed), most)
            return {name: _member(path, archive, named[name], name) for name in names}
    except DAMAGED as error:
        raise unreadable(path, "a file that numpy.savez wrote", error) from error


def mapped(
    path: Path,
    name: str,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    begin: int,
    order: Literal["C", "F"] = "C",
) -> Array:
    """Map the array at an offset of a file, read-only. If the array is not aligned, copy it instead."""
    if not math.prod(shape):
        return np.empty(shape, dtype)
    array = np.memmap(path, dtype, "r", begin, shape, order)
    if dtype.kind == "b":
        require_bools(path, name, array)
    return array if array.flags.aligned else np.array(array)


def _member(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> Array:
    with archive.open(member) as file:
        shape, order, dtype = _header(file)
        begin = file.tell()
        _require_as_declared(path, name, dtype, shape, member.file_size - begin)
        if member.compress_type == zipfile.ZIP_STORED:
            return mapped(path, name, dtype, shape, _place(path, member) + begin, order)
        array = np.empty(math.prod(shape), dtype)
        view = array.view(np.uint8).data
        at = 0
        while at < len(view):
            count = file.readinto(view[at:])  # type: ignore[attr-defined]
            if not count:
                raise EOFError(f"{name!r} ends after {at} of {len(view)} bytes")
            at += count
        if dtype.kind == "b":
            require_bools(path, name, array)
        return array.reshape(shape, order=order)


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], Literal["C", "F"], np.dtype[Any]]:
    """Read the shape, memory order and type from a header. Raises ValueError."""
    version = npy.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"version {version} of the format, which is for records")
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, fortran, dtype = read(file)
    return shape, "F" if fortran else "C", dtype


def _require_as_declared(
    path: Path, name: str, dtype: np.dtype[Any], shape: tuple[int, ...], there: int
) -> None:
    require_numbers(path, name, dtype)
    declared = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or declared != there:
        raise DataError(
            f"data {path}, array {name!r}",
            expected=f"{declared:,} bytes, as its header says with shape {shape}",
            got=f"{there:,}",
            remedy="write the file again",
        )


def _place(path: Path, member: zipfile.ZipInfo) -> int:
    """The offset at which a member's bytes begin in an archive."""
    with path.open("rb") as file:
        file.seek(member.header_offset)
        header = file.read(LOCAL_HEADER)
    lengths = (int.from_bytes(header[k : k + 2], "little") for k in (26, 28))
    return member.header_offset + LOCAL_HEADER + sum(lengths)
