"""Readers of training data: they turn files, folders of images, texts and ragged rows into plain dicts of
numpy arrays.

    from assay import data

    data.read("train.parquet")                    # also .npz, .npy, .safetensors, folders of Parquet, saved datasets
    data.images("photos/", size=(32, 32))         # {"x": u8 [n, 3, 32, 32], "y": int64 [n]}, one folder for each class
    data.text(["a.txt", "b.txt"], length=256)     # {"x": u8 [n, 256]}
    data.padded(rows), data.packed(rows, 256)     # rows of unequal lengths, with a mask, or with segments and positions

`protocol.capture.capture` and `assay.train` take the returned dicts. Nothing is unpickled. Every reader
raises `assay.errors.DataError` for data that it cannot read. Parquet and saved Hugging Face datasets need
pyarrow, images need Pillow: `pip install 'assay[data]'`. If the package is missing, the reader raises
`assay.errors.PackageMissing`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.data.image_folders import images as images
    from assay.data.ragged import packed as packed
    from assay.data.ragged import padded as padded
    from assay.data.reading import read as read
    from assay.data.texts import text as text

_PLACES = {
    "images": "assay.data.image_folders",
    "packed": "assay.data.ragged",
    "padded": "assay.data.ragged",
    "read": "assay.data.reading",
    "text": "assay.data.texts",
}
__all__ = sorted(_PLACES)


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES})
