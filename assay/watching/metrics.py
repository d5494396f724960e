"""Reads metrics from a solver's server, and checks them against the states that the solver committed to.

A server is not trusted. The checkpoint roots that it serves must form a segment tree whose root is the one on
the chain. The tensor roots that it serves for a checkpoint must combine to the root of the checkpoint's
state. The bytes of a metric must have the root of the metric's tensor. The bundle's manifest, whose hash is
in the terms, says which tensors hold metrics.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final

from assay.errors import MetricsError
from assay.watching.curve import Point
from protocol.commitments import segment_tree, state_root, tensor_root
from protocol.commitments.hashing import HASH_BYTES
from protocol.node.addresses import Address
from protocol.node.documents import parse_json
from protocol.node.home import Home
from protocol.node.http_client import LEAST_RATE
from protocol.program.step import METRIC
from protocol.tasks.bundles import BundleError, Limits
from protocol.tasks.bundles.manifest import Manifest, parse_manifest
from protocol.tasks.bundles.sources import Source, open_source, read
from protocol.tasks.bundles.write import MANIFEST
from protocol.tasks.task import Terms

ANSWER_SECONDS: Final = 10.0
"""Seconds for a server to answer. The server also gets the time that the bytes of its answer take at `LEAST_RATE`."""
ENTRY_BYTES: Final = 1_024
"""Maximum bytes of one tensor's entry in a checkpoint's JSON. Of these, the name takes 200, the root 64, and
the shape, which has up to eight lengths, 80.
"""
_F32: Final = struct.Struct("<f")


@dataclass(frozen=True, slots=True)
class Committed:
    """The solver's commitment on the chain: the root of the segment tree over its first `size` checkpoints."""

    root: bytes
    size: int


def metric_tensors(manifest: Manifest) -> dict[str, int]:
    """Maps the name of each metric to the position of its tensor in the manifest's state. Only scalar f32
    tensors can hold metrics.
    """
    return {
        entry.name.removeprefix(METRIC): number
        for number, entry in enumerate(manifest.state)
        if entry.name.startswith(METRIC) and entry.dtype == "f32" and entry.nbytes == _F32.size
    }


def read_manifest(home: Home, terms: Terms, served: Sequence[str | Address], limits: Limits) -> Manifest:
    """The manifest of a task's bundle: from the home folder, otherwise from its address in the terms,
    otherwise from a `served` copy. Raises MetricsError, and BundleError if the home folder's copy has the
    right hash but is not a valid manifest.
    """
    kept = home.bundles / terms.bundle_hash.hex() / MANIFEST
    if kept.is_file() and sha256(data := kept.read_bytes()).digest() == terms.bundle_hash:
        return parse_manifest(data)
    failures = []
    for place in (terms.bundle, *served):
        try:
            with closing(open_source(place, replace(limits, seconds=ANSWER_SECONDS))) as source:
                data = read(source, MANIFEST, limits.manifest_bytes)
            if sha256(data).digest() == terms.bundle_hash:
                return parse_manifest(data)
            failures.append("another manifest")
        except BundleError as error:
            failures.append(error.got or str(error))
    raise MetricsError(
        "the bundle's manifest, which names the metrics",
        expected=f"one with hash {terms.bundle_hash.hex()}",
        got="; ".join(failures),
    )


def read_points(
    base: Address,
    committed: Committed,
    terms: Terms,
    tensors: Mapping[str, int],
    checkpoints: Sequence[int],
    limits: Limits,
) -> list[Point]:
    """Read the metrics of some checkpoints from a task's server at `base`. Raises MetricsError if the files
    are malformed or do not match the commitment. Raises BundleError if the address is not allowed, or if the
    server does not serve the files, or serves too many bytes.
    """
    size = committed.size * HASH_BYTES + len(checkpoints) * terms.state_tensors * ENTRY_BYTES
    seconds = ANSWER_SECONDS + size / LEAST_RATE
    with closing(open_source(base, replace(limits, seconds=seconds))) as source:
        return points_of(source, committed, terms, tensors, checkpoints)


def points_of(
    source: Source,
    committed: Committed,
    terms: Terms,
    tensors: Mapping[str, int],
    checkpoints: Sequence[int],
) -> list[Point]:
    """Like `read_points`, from a source that is already open. Raises MetricsError, BundleError."""
    roots = _roots(source, committed, terms.segments)
    return [_point(source, number, roots[number], terms, tensors) for number in checkpoints]


def _roots(source: Source, committed: Committed, segments: int) -> list[bytes]:
    """State roots of the committed checkpoints."""
    data = read(source, "segments", (segments + 1) * HASH_BYTES)[: committed.size * HASH_BYTES]
    roots = [data[at : at + HASH_BYTES] for at in range(0, len(data), HASH_BYTES)]
    if len(data) != committed.size * HASH_BYTES or segment_tree(roots).root != committed.root:
        raise MetricsError(
            "the roots of the solver's checkpoints",
            expected=f"{committed.size} with the committed root {committed.root.hex()[:16]}…",
            got=f"{len(data) // HASH_BYTES} that have another",
        )
    return roots


def _point(source: Source, number: int, root: bytes, terms: Terms, tensors: Mapping[str, int]) -> Point:
    said = read(source, f"checkpoints/{number}", terms.state_tensors * ENTRY_BYTES + ENTRY_BYTES)
    roots = list(_tensor_roots(said))
    if len(roots) != terms.state_tensors or state_root(roots) != root:
        raise MetricsError(
            f"checkpoint {number}",
            expected=f"tensors of the state {root.hex()[:16]}…",
            got=f"{len(roots)} roots that make another state",
        )
    values = {}
    for name, tensor in tensors.items():
        data = read(source, f"checkpoints/{number}/tensors/{tensor}", _F32.size)
        if len(data) != _F32.size or tensor_root(data) != roots[tensor]:
            raise MetricsError(
                f"metric {name} of checkpoint {number}",
                expected=f"bytes with the root {roots[tensor].hex()[:16]}…",
                got=f"{len(data)} others",
            )
        (values[name],) = _F32.unpack(data)
    return Point(number, number * terms.segment_steps, root, values)


def _tensor_roots(said: bytes) -> Iterator[bytes]:
    """The roots of a checkpoint's tensors, from a solver's JSON. Raises MetricsError if that is malformed."""
    try:
        for entry in parse_json(said)["tensors"]:
            root = bytes.fromhex(str(entry["root"]).removeprefix("0x"))
            if len(root) != HASH_BYTES:
                raise ValueError("a root of another length")
            yield root
    except (ValueError, KeyError, TypeError) as error:
        raise MetricsError(
            "a checkpoint's tensors", expected="JSON with their roots", got=type(error).__name__
        ) from error
