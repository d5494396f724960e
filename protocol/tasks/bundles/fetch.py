"""Fetches a bundle from a stranger. Before anything runs, it checks sizes, then hashes, then programs, roots
and types.

Blobs go into a local store by their hash, so that after a restart only missing blobs are fetched. No archive
is unpacked, and the bundle chooses no paths: the path of a file follows from its hash.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import TypeVar
from weakref import WeakValueDictionary

import torch

from protocol.commitments import BlobStore, CommitmentError, CorruptBlob
from protocol.commitments.errors import TooManyMaps
from protocol.commitments.mapping import MAPS_EACH
from protocol.commitments.store import LARGE, SMALL
from protocol.commitments.tensors import CODES, Tensor, is_canonical
from protocol.commitments.threads import each
from protocol.node.addresses import Address
from protocol.node.http_client import Body
from protocol.numerics.types import DType
from protocol.program.errors import ProgramError
from protocol.program.library import Hint
from protocol.program.program import Program, decode_closure
from protocol.program.step import StepProgram
from protocol.program.types import TensorType
from protocol.tasks.arithmetics import is_computed, versions
from protocol.tasks.bundles.bundle import Bundle, Held
from protocol.tasks.bundles.errors import (
    BundleMalformed,
    BundleMismatch,
    BundleTooLarge,
    NoMapsYet,
    TensorsTooLarge,
    WrongFile,
)
from protocol.tasks.bundles.limits import Limits
from protocol.tasks.bundles.manifest import Manifest, ProgramEntry, TensorEntry, parse_manifest
from protocol.tasks.bundles.sources import FileSource, Source, open_source, read, read_manifest
from protocol.tasks.bundles.write import BLOBS, MANIFEST

Content = TypeVar("Content", bytes, memoryview)

_Key = tuple[tuple[tuple[str, str], ...], tuple[tuple[bytes, str], ...], tuple[tuple[str, ...], int, int]]
_STEPS: WeakValueDictionary[_Key, StepProgram] = WeakValueDictionary()
"""Step programs in use. A key consists of the ids and blobs of the programs, the names in the hints, the
names of the state's tensors, how many dataset tensors there are, and how many constants. Tasks that train the
same model share one step program, including its plans.
"""


def fetch_bundle(
    place: str | Address, bundle_hash: bytes, store: BlobStore, limits: Limits | None = None
) -> Bundle:
    """The bundle at `place` whose manifest has the SHA-256 `bundle_hash`. Everything that the hash covers is
    verified.

    The manifest is also kept in the store, under the bundle's hash. Raises BundleError (see `errors`).
    `require_terms` checks whether the bundle matches its terms.
    """
    limits = limits or Limits()
    with closing(open_source(place, limits)) as source:
        return _load(source, bundle_hash, store, limits)


def load_bundle(folder: Path, store: BlobStore | None = None, limits: Limits | None = None) -> Bundle:
    """The bundle in a local folder, verified like any other bundle, except that its hash is not compared with
    a given one.
    """
    source = FileSource(str(folder))
    limits = limits or Limits()
    data = read(source, MANIFEST, limits.manifest_bytes)
    return _load(source, sha256(data).digest(), store or BlobStore(folder / BLOBS), limits)


def _load(source: Source, bundle_hash: bytes, store: BlobStore, limits: Limits) -> Bundle:
    data = read_manifest(source, limits.manifest_bytes, bundle_hash)
    manifest = parse_manifest(data)
    if not is_computed(manifest.arithmetic):
        raise BundleMismatch(
            "arithmetic of the bundle",
            expected=f"a version that this release computes: {versions()}",
            got=manifest.arithmetic,
            remedy="install the release that computes it, or leave this bundle",
        )
    _within("encoded programs", sum(entry.bytes for entry in manifest.programs), limits.program_bytes)
    tensors_bytes = sum(entry.nbytes for entry in manifest.tensors)
    _within("tensors", tensors_bytes, limits.total_bytes, TensorsTooLarge)
    small = _small(manifest)
    step = _step(source, store, manifest, limits)
    if limits.reserve is not None:
        limits.reserve(_missing_bytes(store, manifest))
    tensors = iter(_tensors(source, store, manifest, small))
    state, dataset, constants = (
        tuple(islice(tensors, len(entries)))
        for entries in (manifest.state, manifest.dataset, manifest.constants)
    )
    hints = {
        bytes.fromhex(entry.id): Hint(entry.hint.name, entry.hint.attributes)
        for entry in manifest.programs
        if entry.hint is not None
    }
    store.put(data)  # also the manifest, last: a store that has it has the whole bundle
    return Bundle(
        manifest.name, step, state, dataset, constants, hints, manifest.arithmetic, _held(manifest, small)
    )


def _step(source: Source, store: BlobStore, manifest: Manifest, limits: Limits) -> StepProgram:
    """Fetch the programs, and return the step program after checking that it is valid and within the limits.
    This happens before any tensor is fetched.
    """
    names = {
        bytes.fromhex(entry.id): entry.hint.name for entry in manifest.programs if entry.hint is not None
    }
    names[bytes.fromhex(manifest.programs[-1].id)] = "step"
    parts = (tuple(entry.name for entry in manifest.state), len(manifest.dataset), len(manifest.constants))
    key = (tuple((entry.id, entry.blob) for entry in manifest.programs), tuple(names.items()), parts)
    try:
        # Needed even if the step is known, because the blobs are put into the store.
        encoded = [_encoded(source, store, entry) for entry in manifest.programs]
        step = _STEPS.get(key)
        if step is None:
            program = decode_closure(encoded, names)
            _require_listed(manifest, program)
            step = StepProgram(program, *parts)
            step.check()
            _STEPS[key] = step
    except (ProgramError, CommitmentError, RecursionError) as error:
        raise BundleMalformed(
            "programs of the bundle",
            expected="programs that pass `check`",
            got=error,
            remedy="refuse this bundle",
        ) from error
    for entry, type_ in zip(manifest.tensors, step.program.inputs, strict=True):
        _require(
            f"type of {entry.name}",
            str(type_),
            str(TensorType(DType(CODES[entry.dtype]), tuple(entry.shape))),
        )
    bundle = Bundle(manifest.name, step, (), (), ())
    _within("operations of a step", bundle.cost.operations, limits.step_operations)
    _within("bytes alive in a step", bundle.cost.peak_bytes, limits.peak_bytes)
    return step


def _require_listed(manifest: Manifest, program: Program) -> None:
    """Check that the manifest lists exactly the step and the programs that it calls, in order, each by its own id."""
    found = [reached.id.hex() for reached in program.closure()]
    _require("ids of the bundle's programs", [entry.id for entry in manifest.programs], found)


def _encoded(source: Source, store: BlobStore, entry: ProgramEntry) -> bytes:
    data = _blob(source, store, entry.blob, entry.bytes, store.get)
    _require(f"length of program {entry.id}", entry.bytes, len(data))
    return data


def _distinct(manifest: Manifest) -> dict[tuple[str, str, int], TensorEntry]:
    """The first tensor of each group of tensors with equal bytes and type."""
    first: dict[tuple[str, str, int], TensorEntry] = {}
    for entry in manifest.tensors:
        first.setdefault((entry.blob, entry.dtype, entry.nbytes), entry)
    return first


def _small(manifest: Manifest) -> int:
    """The limit in bytes from which this bundle's tensors are memory-mapped; smaller tensors are read. If the
    bundle has many tensors, the limit is `LARGE`, so that the bundle takes at most `MAPS_EACH` memory maps
    and leaves the others to other bundles. Raises BundleTooLarge if the bundle needs more memory maps even
    with `LARGE`.
    """
    sizes = [nbytes for _, _, nbytes in _distinct(manifest)]
    if sum(nbytes >= SMALL for nbytes in sizes) <= MAPS_EACH:
        return SMALL
    _within(f"distinct tensors of {LARGE} bytes or more", sum(nbytes >= LARGE for nbytes in sizes), MAPS_EACH)
    return LARGE


def _held(manifest: Manifest, small: int) -> Held:
    """What the bundle takes up in memory if tensors of `small` bytes or more are mapped: the number of memory
    maps, and the bytes of the tensors that are read instead.
    """
    sizes = [nbytes for _, _, nbytes in _distinct(manifest)]
    return Held(sum(nbytes >= small for nbytes in sizes), sum(nbytes for nbytes in sizes if nbytes < small))


def _tensors(source: Source, store: BlobStore, manifest: Manifest, small: int) -> list[Tensor]:
    """All tensors, in the manifest's order. Tensors with equal bytes share these bytes, which are read and
    hashed only once. Tensors of `small` bytes or more are mapped instead of read.

    Initial states often have tensors with equal bytes, because Adam's moments are zeros. Reading and hashing
    use several threads.
    """
    first = _distinct(manifest)
    one_by_one = _OneByOne(source)
    read = each(
        lambda entry: _tensor(one_by_one, store, entry, small), list(first.values()), torch.get_num_threads()
    )
    by_content = dict(zip(first, read, strict=True))
    found = []
    for entry in manifest.tensors:
        same = by_content[entry.blob, entry.dtype, entry.nbytes]
        _require(f"root of tensor {entry.name}", entry.root, same.root.hex())
        found.append(same.renamed(entry.name, tuple(entry.shape)))
    return found


def _missing_bytes(store: BlobStore, manifest: Manifest) -> int:
    """Upper bound on the total size, in bytes, of the tensors that must still be fetched into the store."""
    sizes: dict[str, int] = {}
    for entry in manifest.tensors:
        sizes[entry.blob] = max(entry.nbytes, sizes.get(entry.blob, 0))
    return sum(nbytes for blob, nbytes in sizes.items() if not store.has(blob))


def _tensor(source: Source, store: BlobStore, entry: TensorEntry, small: int) -> Tensor:
    """Fetch a tensor, check that its bytes are canonical, and compute its root, which the caller compares."""
    try:
        data = _blob(source, store, entry.blob, entry.nbytes, partial(store.map, small=small))
    except TooManyMaps as error:
        raise NoMapsYet(
            f"tensor {entry.name}",
            expected="a free memory map",
            got=error,
            remedy="none needed: the bundle is loaded later, once other tasks are over",
        ) from error
    _require(f"length of tensor {entry.name}", entry.nbytes, len(data))
    tensor = Tensor(entry.name, CODES[entry.dtype], tuple(entry.shape), data)
    # Running the step gives canonical bytes. With other bytes in the terms, an honest solver would look guilty.
    if not is_canonical(tensor.dtype, data):
        raise BundleMismatch(
            f"canonical bytes of tensor {entry.name}",
            expected="no NaN but 0x7fc00000, no bool but 0 and 1",
            got="others",
            remedy="refuse this bundle",
        )
    _ = tensor.root
    return tensor


class _OneByOne:
    """A source that several threads may use, one at a time."""

    def __init__(self, source: Source) -> None:
        self._source, self._turn = source, Lock()

    def copy(self, name: str, limit: int, into: Body) -> None:
        with self._turn:
            self._source.copy(name, limit, into)

    def close(self) -> None:
        self._source.close()


def _blob(source: Source, store: BlobStore, blob: str, limit: int, take: Callable[[str], Content]) -> Content:
    """Fetch a blob if it is missing or damaged. Then read it from the store with `take`, which is called with
    the blob's id, and return what `take` returns.
    """
    if store.has(blob):
        with suppress(CorruptBlob):  # fetch it again and replace the damaged copy
            return take(blob)
    with store.arriving(blob) as arriving:
        source.copy(f"{BLOBS}/{blob[:2]}/{blob}", limit, arriving)
        _require_hash(f"SHA-256 of blob {blob}", blob, arriving.id)
    return take(blob)


def _require(what: str, expected: object, got: object) -> None:
    if expected != got:
        raise BundleMismatch(what, expected=expected, got=got, remedy="refuse this bundle")


def _require_hash(what: str, expected: str, got: str) -> None:
    if got != expected:
        raise WrongFile(what, expected=expected, got=got, remedy="try again later, or do not take this task")


def _within(what: str, got: int, limit: int, kind: type[BundleTooLarge] = BundleTooLarge) -> None:
    if got > limit:
        raise kind(
            what,
            expected=f"at most {limit}",
            got=got,
            remedy="refuse this bundle, or raise the limit on purpose",
        )
