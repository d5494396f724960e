"""A checkpoint (`states`) on disk.

There is one blob per tensor, and a JSON manifest that lists the blobs with their types, shapes and roots. The
manifest's blob id names the checkpoint. The manifest is written last, so a checkpoint with a manifest is complete.
`write_state` saves a state tensor by tensor, without holding a copy of it. `load_checkpoint` trusts nothing: it
recomputes every tensor root and the state root. `load_tensor` reads one tensor and checks only its length and blob
id. The commitment is the state root (docs/spec/encoding.md section 2), which does not depend on this file format.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Annotated, BinaryIO, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from protocol.commitments.chunks import tensor_root
from protocol.commitments.errors import BlobTooLarge, CheckpointError
from protocol.commitments.hashing import BytesLike
from protocol.commitments.roots import state_root as root_of_state
from protocol.commitments.states import Checkpoint, require_names
from protocol.commitments.store import BlobStore
from protocol.commitments.tensors import CODES, DTYPES, Tensor, require_length, tensor_bytes
from protocol.commitments.threads import each
from protocol.node.format_versions import only

VERSION: Final = 1
MAX_MANIFEST_BYTES = 1 << 24  # about 300 bytes a tensor: room for 50,000 tensors
DEFAULT_MAX_BYTES = 1 << 36  # 64 GiB of state

_Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_DType = Literal["f32", "u8", "i32", "u32", "i64", "bool"]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    # Module paths as torch writes them; no spaces, no surrogates, nothing that a terminal would interpret.
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_./:\[\]-]{1,200}$")]
    dtype: _DType
    shape: list[int]
    root: _Hash
    blob: _Hash


class _Manifest(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    format: Literal["assay-checkpoint"]
    version: Annotated[int, only(VERSION)]
    state_root: _Hash
    tensors: Annotated[list[_Entry], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class Piece:
    """A tensor to write. `data` returns its canonical bytes; it is called once, when the tensor is written."""

    name: str
    dtype: int
    shape: tuple[int, ...]
    data: Callable[[], BytesLike]


@dataclass(frozen=True, slots=True)
class Written:
    """A checkpoint that is on disk: the id of its manifest, and its state root."""

    manifest: str
    state_root: bytes


def save_checkpoint(store: BlobStore, checkpoint: Checkpoint) -> str:
    """Write a checkpoint and return the id of its manifest. If it fails, no manifest is written."""
    entries = [
        _entry(store, tensor.name, tensor.dtype, tensor.shape, tensor.data, tree.root)
        for tensor, tree in zip(checkpoint.tensors, checkpoint.trees, strict=True)
    ]
    return _put_manifest(store, entries, checkpoint.state_root)


def write_state(store: BlobStore, pieces: Sequence[Piece], threads: int = 1) -> Written:
    """Write the same files as `save_checkpoint`, without holding all of the state's bytes. The manifest is
    written last.

    `threads` is the number of threads. Each thread hashes and writes one tensor at a time, so that one thread
    can hash while another waits for the disk. If a thread fails, no manifest is written, and its error is
    raised once all threads have stopped.
    """
    require_names([piece.name for piece in pieces])
    entries = each(lambda piece: _write(store, piece), pieces, threads)
    root = root_of_state([bytes.fromhex(entry.root) for entry in entries])
    return Written(_put_manifest(store, entries, root), root)


@dataclass(frozen=True, slots=True)
class Stored:
    """A manifest's entry for one tensor of a checkpoint on disk. `blob` is the id of its canonical bytes."""

    name: str
    dtype: int
    shape: tuple[int, ...]
    root: bytes
    blob: str


def stored_tensors(store: BlobStore, manifest_id: str, state_root: bytes) -> list[Stored]:
    """The tensors that a checkpoint's manifest lists; no tensor is read.

    Raises CheckpointError (malformed manifest, roots that do not make `state_root`), BlobTooLarge (manifest),
    MissingBlob, or CorruptBlob.
    """
    manifest = _parse(manifest_id, store.get(manifest_id, max_bytes=MAX_MANIFEST_BYTES))
    stored = [
        Stored(entry.name, CODES[entry.dtype], tuple(entry.shape), bytes.fromhex(entry.root), entry.blob)
        for entry in manifest.tensors
    ]
    found = root_of_state([tensor.root for tensor in stored])
    _require_root(f"state root of checkpoint {manifest_id}", state_root.hex(), found.hex())
    return stored


def load_tensor(store: BlobStore, stored: Stored) -> Tensor:
    """Read one tensor and check its bytes against the blob id in the manifest.

    Raises CheckpointError or BlobTooLarge (wrong length), MissingBlob, or CorruptBlob.
    """
    data = store.get(stored.blob, max_bytes=tensor_bytes(stored.dtype, stored.shape))
    return Tensor(stored.name, stored.dtype, stored.shape, data)


def open_tensor(store: BlobStore, stored: Stored) -> BinaryIO:
    """One tensor's canonical bytes as an open file, checked like those of `load_tensor`. The caller closes
    the file. Raises OSError and the errors of `load_tensor`.
    """
    with ExitStack() as unless_checked:
        file = unless_checked.enter_context(store.open(stored.blob))
        require_length(stored.name, stored.dtype, stored.shape, file.seek(0, os.SEEK_END))
        file.seek(0)
        unless_checked.pop_all()
    return file


def load_checkpoint(
    store: BlobStore, manifest_id: str, *, state_root: bytes | None = None, max_bytes: int = DEFAULT_MAX_BYTES
) -> Checkpoint:
    """Read a checkpoint and recompute all roots. If `state_root` is given, the state must have it.

    Raises CheckpointError (malformed manifest, wrong length, type or root), BlobTooLarge (manifest, or blob
    longer than its tensor), MissingBlob, or CorruptBlob. If the tensors exceed `max_bytes` in total, raises
    BlobTooLarge before any tensor is read.
    """
    manifest = _parse(manifest_id, store.get(manifest_id, max_bytes=MAX_MANIFEST_BYTES))
    total = sum(tensor_bytes(CODES[entry.dtype], entry.shape) for entry in manifest.tensors)
    if total > max_bytes:
        raise BlobTooLarge(
            f"checkpoint {manifest_id}",
            expected=f"at most {max_bytes} bytes",
            got=f"{total} bytes",
            remedy="raise max_bytes if this size is legitimate",
        )
    if state_root is not None:
        _require_root(f"state root of checkpoint {manifest_id}", state_root.hex(), manifest.state_root)
    checkpoint = Checkpoint([_load_tensor(store, entry) for entry in manifest.tensors])
    for entry, tree in zip(manifest.tensors, checkpoint.trees, strict=True):
        _require_root(
            f"root of tensor {entry.name!r} in checkpoint {manifest_id}", entry.root, tree.root.hex()
        )
    _require_root(f"state root of checkpoint {manifest_id}", manifest.state_root, checkpoint.state_root.hex())
    return checkpoint


def _write(store: BlobStore, piece: Piece) -> _Entry:
    data = piece.data()
    require_length(piece.name, piece.dtype, piece.shape, memoryview(data).nbytes)
    return _entry(store, piece.name, piece.dtype, piece.shape, data, tensor_root(data))


def _entry(
    store: BlobStore, name: str, dtype: int, shape: tuple[int, ...], data: BytesLike, root: bytes
) -> _Entry:
    """Store a tensor's bytes and return its manifest entry."""
    try:
        return _Entry.model_validate(
            {
                "name": name,
                "dtype": DTYPES[dtype][0],
                "shape": list(shape),
                "root": root.hex(),
                "blob": store.put(data),
            }
        )
    except ValidationError as error:
        raise CheckpointError(
            "tensor name",
            expected="1 to 200 of A-Z a-z 0-9 _ . / : [ ] -",
            got=repr(name[:200]),
            remedy="rename the tensor",
        ) from error


def _put_manifest(store: BlobStore, entries: list[_Entry], root: bytes) -> str:
    manifest = _Manifest(format="assay-checkpoint", version=VERSION, state_root=root.hex(), tensors=entries)
    return store.put(json.dumps(manifest.model_dump(), sort_keys=True, separators=(",", ":")).encode())


def _load_tensor(store: BlobStore, entry: _Entry) -> Tensor:
    dtype = CODES[entry.dtype]
    data = store.get(entry.blob, max_bytes=tensor_bytes(dtype, entry.shape))
    return Tensor(entry.name, dtype, tuple(entry.shape), data)


def _parse(manifest_id: str, data: bytes) -> _Manifest:
    try:
        return _Manifest.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the document"
        raise CheckpointError(
            f"manifest {manifest_id}",
            expected=f"an assay-checkpoint of version {VERSION}",
            got=f"{where}: {first['msg']}",
            remedy="load a manifest that save_checkpoint wrote, with this or an older release",
        ) from error


def _require_root(what: str, expected: str, got: str) -> None:
    if expected != got:
        raise CheckpointError(
            what, expected=expected, got=got, remedy="discard this checkpoint and fetch it from another party"
        )
