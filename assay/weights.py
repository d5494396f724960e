"""Checks whether a safetensors file holds the tensors of a task's result, bit for bit. The file is read
tensor by tensor.

The root of a tensor does not cover the tensor's name, type or shape. So these come from the bundle's
manifest, whose hash is on the chain. Without the manifest, two tensors of the same shape could be swapped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from assay.errors import WeightsMalformed, WeightsMismatch
from assay.proofs import METADATA
from protocol.commitments import tensor_root
from protocol.tasks.bundles.manifest import TensorEntry

TYPES: Final = {"f32": "F32", "u8": "U8", "i32": "I32", "u32": "U32", "i64": "I64", "bool": "BOOL"}
"""Names of types in safetensors, by their names in a manifest."""


class Opened(Protocol):
    """An open safetensors file."""

    def keys(self) -> Sequence[str]: ...
    def metadata(self) -> dict[str, str] | None: ...
    def get_slice(self, name: str) -> Any: ...
    def get_tensor(self, name: str) -> Any: ...


@dataclass(frozen=True)
class Weights:
    """What `compare` returns for a file whose tensors all match the result's: how many tensors the file has,
    and the names of the result's tensors that it lacks.
    """

    tensors: int
    missing: tuple[str, ...]


def embedded_proof(path: Path) -> str | None:
    """The text of the proof in a file's metadata; None if there is none. Raises WeightsMalformed."""
    return header(path).get(METADATA)


def header(path: Path) -> dict[str, str]:
    """A file's metadata; empty if it has none. Raises WeightsMalformed."""
    with _opened(path) as file:
        return file.metadata() or {}


def compare(path: Path, state: Sequence[TensorEntry], roots: Sequence[bytes]) -> Weights:
    """Compare a file with the tensors of a state, given their entries in the manifest and their roots. The
    file may lack some of the state's tensors, such as an optimiser's, but may not hold any tensor that the
    state does not have. Raises WeightsMalformed, WeightsMismatch.
    """
    due = {entry.name: (entry, root) for entry, root in zip(state, roots, strict=True)}
    with _opened(path) as file:
        names = list(file.keys())
        if not names:
            raise _differs(path, "tensors of the task's state", "no tensor")
        if unknown := [name for name in names if name not in due]:
            raise _differs(path, "tensors of the task's state alone", f"{unknown[0][:200]!a}")
        for name in names:
            entry, root = due[name]
            view = file.get_slice(name)
            kind, shape = str(view.get_dtype()), list(view.get_shape())
            if (kind, shape) != (TYPES[entry.dtype], entry.shape):
                said = f"{TYPES[entry.dtype]} {entry.shape} of {name}"
                raise _differs(path, said, f"{kind} {shape}")
            if (found := _root(file, name)) != root:
                raise _differs(path, f"{name} with root {root.hex()}", found.hex())
    return Weights(len(names), tuple(name for name in due if name not in set(names)))


def _root(file: Opened, name: str) -> bytes:
    """The root of the bytes that a tensor has in the file. If these bytes are not canonical, their root
    differs from that of the tensor in the state.
    """
    array = np.ascontiguousarray(file.get_tensor(name))
    return tensor_root(array.reshape(-1).view(np.uint8).data)


@contextmanager
def _opened(path: Path) -> Iterator[Opened]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            yield file
    except (SafetensorError, OSError) as error:
        raise WeightsMalformed(
            f"weights {path}",
            expected="a readable safetensors file",
            got=f"{type(error).__name__}: {str(error)[:200]!a}",
            remedy="name a file that `assay result` wrote, or one with tensors of it",
        ) from error


def _differs(path: Path, expected: str, got: str) -> WeightsMismatch:
    return WeightsMismatch(
        f"weights {path}",
        expected=expected,
        got=got,
        remedy="this file is not the task's result: do not use it as that",
    )
