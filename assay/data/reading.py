"""`read`: chooses the reader for a path by its suffix, or by the content of a folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from assay.data.checks import MOST, Arrays, require_count, require_file, require_path, whole
from assay.data.numpy_files import read_npy, read_npz
from assay.data.safetensors_files import read_safetensors
from assay.data.tables import DICT, STATE, read_parquet, read_saved
from assay.errors import DataError

READABLE: Final = (
    ".npz, .npy, .safetensors or .parquet, a folder of .parquet, or a dataset that save_to_disk wrote"
)


def read(path: str | os.PathLike[str], *, columns: Sequence[str] | None = None, most: int = MOST) -> Arrays:
    """Read the arrays of a file or folder, and return them by name. Each array has one row per example.
    `columns` names the arrays to read; by default, all are read.

    `.npy` gives one array, named `x`. `.npy`, `.safetensors` and uncompressed arrays of `.npz` are mapped
    read-only, so they may be larger than memory; arrays that are not aligned in the file are copied. Parquet
    files and saved datasets give columns of numbers, bools, and lists of equal length. For these, `path` may
    be a `.parquet` file; a folder of `.parquet` files, which are read in the order of their names; or a
    folder that `save_to_disk` of Hugging Face's `datasets` wrote.

    At most `most` bytes are unpacked from a compressed `.npz` or from Parquet files; the sizes that the files
    declare are checked before reading. Raises DataError, and PackageMissing if pyarrow is not installed.
    """
    place = Path(path)
    require_count("most", most)
    if isinstance(columns, str):
        raise DataError(
            "columns", expected="a list of names", got=repr(columns), remedy=f"columns=[{columns!r}]"
        )
    require_path(place, READABLE)
    if place.is_dir():
        return whole(place, _read_folder(place, columns, most))
    require_file(place)
    match place.suffix.lower():
        case ".npy":
            arrays = read_npy(place, columns)
        case ".npz":
            arrays = read_npz(place, columns, most)
        case ".safetensors":
            arrays = read_safetensors(place, columns)
        case ".parquet":
            arrays = read_parquet([place], columns, most)
        case suffix:
            raise DataError(
                f"data {place}",
                expected=READABLE,
                got=f"suffix {suffix!r}",
                remedy="convert it, or read it yourself into numpy arrays by name",
            )
    return whole(place, arrays)


def _read_folder(folder: Path, columns: Sequence[str] | None, most: int) -> Arrays:
    if (folder / STATE).is_file():
        return read_saved(folder, columns)
    splits = sorted(file.parent.name for file in folder.glob(f"*/{STATE}"))
    if (folder / DICT).is_file() or splits:
        got = f"a folder of datasets: {', '.join(splits)}"
        raise DataError(
            f"data {folder}", expected="one dataset", got=got, remedy="name one of them, as in FOLDER/train"
        )
    files = sorted(file for file in folder.iterdir() if file.suffix.lower() == ".parquet")
    if not files:
        remedy = "name a file, or read a folder of images by assay.data.images"
        raise DataError(f"data {folder}", expected=READABLE, got="a folder without such files", remedy=remedy)
    return read_parquet(files, columns, most)
