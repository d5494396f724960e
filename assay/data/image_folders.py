"""Reads a folder of images, one subfolder per class, with Pillow. Classes and images have the same order as
in torchvision's `ImageFolder`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from assay.data.checks import MOST, Arrays, package, require_count, require_path, require_room, unreadable
from assay.errors import DataError

SUFFIXES: Final = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")
"""The suffixes that `ImageFolder` reads; files with other suffixes are ignored."""
FORMATS: Final = ("JPEG", "PNG", "PPM", "BMP", "TIFF", "WEBP")
WIDE: Final = ("I", "F")
"""Prefixes of Pillow's modes that have more than 8 bits per channel. A conversion to u8 would clip their values."""


def images(
    folder: str | os.PathLike[str], size: tuple[int, int] | None = None, *, most: int = MOST
) -> Arrays:
    """Read a folder of images into `x` u8 [n, 3, height, width], whose channels are red, green and blue, and
    `y` int64 [n], the class of each image.

    Classes are the folders in `folder`, numbered in the order of their names. A class contains all images in
    or below its folder, ordered by folder and then by name. If `size` (height, width) is given, images of
    other sizes are resized to it (bilinear). Otherwise all images must have the same size. `x` may have at
    most `most` bytes. Transparency is dropped.

    Raises DataError, and PackageMissing if Pillow is not installed.
    """
    place = Path(folder)
    require_path(place, "a folder with a folder for each class")
    files = list(_files(place))
    if size is not None:
        size = _require_size(size)
    height, width = size or _size_of(files[0][0])
    require_room(place, 3 * height * width * len(files), most, "resize them by size=, or give a larger most=")
    x = np.empty((len(files), 3, height, width), np.uint8)
    for number, (file, _) in enumerate(files):
        x[number] = _pixels(file, (height, width), resized=size is not None, first=files[0][0])
    return {"x": x, "y": np.array([label for _, label in files], np.int64)}


def _files(folder: Path) -> Iterator[tuple[Path, int]]:
    """All image files with their class numbers."""
    if not folder.is_dir():
        got, remedy = "a file", "name the folder; one file of arrays is read by assay.data.read"
        raise DataError(f"images {folder}", expected="a folder of folders", got=got, remedy=remedy)
    classes = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
    if not classes:
        remedy = "put the images of each class into their own folder"
        raise DataError(f"images {folder}", expected="a folder for each class", got="none", remedy=remedy)
    for label, name in enumerate(classes):
        found = [
            Path(above, file)
            for above, _, names in sorted(os.walk(folder / name))
            for file in sorted(names)
            if file.lower().endswith(SUFFIXES)
        ]
        if not found:
            got, remedy = "none", f"add some ({', '.join(SUFFIXES)}), or remove the folder"
            raise DataError(f"images {folder / name}", expected="images of a class", got=got, remedy=remedy)
        yield from ((file, label) for file in found)


def _require_size(size: Any) -> tuple[int, int]:
    if not isinstance(size, tuple | list) or len(size) != 2:
        raise DataError("size", expected="(height, width)", got=repr(size), remedy="as in size=(32, 32)")
    return require_count("size", size[0]), require_count("size", size[1])


def _size_of(file: Path) -> tuple[int, int]:
    """Height and width, from the file's header."""
    image = package("PIL.Image", "Pillow", "images")
    try:
        with image.open(file, formats=FORMATS) as opened:
            return opened.height, opened.width
    except (OSError, ValueError, SyntaxError, image.DecompressionBombError) as error:
        raise unreadable(file, "an image", error) from error


def _pixels(file: Path, size: tuple[int, int], *, resized: bool, first: Path) -> np.ndarray[Any, Any]:
    """The pixels of an image, [3, height, width]."""
    image = package("PIL.Image", "Pillow", "images")
    try:
        with image.open(file, formats=FORMATS) as opened:
            if opened.mode.startswith(WIDE):
                remedy = "convert it to 8 bits for each colour"
                raise DataError(f"images {file}", expected="8 bits", got=f"mode {opened.mode}", remedy=remedy)
            if not resized and (opened.height, opened.width) != size:
                raise DataError(
                    f"images {file}",
                    expected=f"{size[0]} x {size[1]} pixels (height x width), as {first} has",
                    got=f"{opened.height} x {opened.width}",
                    remedy=f"resize all by size={size}, or leave it out",
                )
            colours = opened.convert("RGB")
            if colours.size != size[::-1]:
                colours = colours.resize(size[::-1], image.Resampling.BILINEAR)
            return np.asarray(colours).transpose(2, 0, 1)
    except (OSError, ValueError, SyntaxError, image.DecompressionBombError) as error:
        raise unreadable(file, "an image", error) from error
