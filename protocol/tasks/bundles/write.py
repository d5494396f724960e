"""Writes a bundle: first the blobs, last the manifest, so that a bundle with a manifest is complete."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from protocol.commitments import BlobStore
from protocol.commitments.atomic import write_atomically
from protocol.commitments.tensors import DTYPES, Tensor
from protocol.tasks.bundles.manifest import VERSION, parse_manifest

if TYPE_CHECKING:
    from protocol.program.program import Program
    from protocol.tasks.bundles.bundle import Bundle

MANIFEST: Final = "manifest.json"
BLOBS: Final = "blobs"


def write_bundle(bundle: Bundle, url: str | Path) -> bytes:
    """Write a bundle to a folder or an fsspec URL. Return the bundle's hash, the SHA-256 of its manifest.

    Raises ProgramError if the step program does not pass `check`. Raises BundleMalformed if the bundle has
    names that a manifest does not allow, or has neither a dataset tensor nor a constant.
    """
    bundle.step.check()
    store = BlobStore(f"{url}/{BLOBS}")
    manifest = {
        "format": "assay-bundle",
        "version": VERSION,
        "name": bundle.name,
        "arithmetic": bundle.arithmetic,
        "programs": [_program(store, bundle, program) for program in bundle.step.program.closure()],
        "state": [_tensor(store, tensor) for tensor in bundle.state],
        "dataset": [_tensor(store, tensor) for tensor in bundle.dataset],
        "constants": [_tensor(store, tensor) for tensor in bundle.constants],
    }
    data = json.dumps(manifest, separators=(",", ":"), allow_nan=False).encode()
    parse_manifest(data)  # check that readers accept it
    _put(f"{url}/{MANIFEST}", data)
    return sha256(data).digest()


def _program(store: BlobStore, bundle: Bundle, program: Program) -> dict[str, Any]:
    data = program.encode()
    hint = bundle.hints.get(program.id)
    return {
        "id": program.id.hex(),
        "blob": store.put(data),
        "bytes": len(data),
        "hint": None if hint is None else {"name": hint.name, "attributes": dict(hint.attributes)},
    }


def _tensor(store: BlobStore, tensor: Tensor) -> dict[str, Any]:
    return {
        "name": tensor.name,
        "dtype": DTYPES[tensor.dtype][0],
        "shape": list(tensor.shape),
        "root": tensor.root.hex(),
        "blob": store.put(tensor.data),
    }


def _put(url: str, data: bytes) -> None:
    from fsspec.core import url_to_fs
    from fsspec.implementations.local import LocalFileSystem

    system, path = url_to_fs(url)
    if isinstance(system, LocalFileSystem):
        write_atomically(Path(path), data)
    else:
        system.pipe_file(path, data)
