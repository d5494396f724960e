"""Verifying proofs about RFC 9162 trees: pure functions of sizes, hashes and proofs; no tree is held.

Covers inclusion of a leaf or a subtree (RFC 9162 section 2.1.3), consistency (section 2.1.4), and the reveal of a
node's descendants (dispute.md section 6). An RFC 9162 root does not commit to the tree's size: a path can have the same
shape in trees of two sizes. So a size must come from the same source as the root, never from the proof's sender.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from protocol.commitments.errors import ProofError
from protocol.commitments.geometry import descendants, siblings, split
from protocol.commitments.hashing import HASH_BYTES, leaf_hash, node_hash


def root_from_path(tree_size: int, lo: int, size: int, node: bytes, path: Sequence[bytes]) -> bytes:
    """Root of a tree of `tree_size` leaves in which node (lo, size) has hash `node` and siblings `path`.

    `path` holds 32-byte hashes, bottom first. An inclusion proof is the case size = 1 with `node` a leaf hash.
    Raises ProofError if (lo, size) is not a node of that tree, if the path's length is not the node's depth,
    or if a hash does not have 32 bytes.
    """
    expected = siblings(tree_size, lo, size)
    _require_count("path", len(expected), path)
    _require_hash("node hash", node)
    result = node
    for (sibling_lo, _), sibling in zip(expected, path, strict=True):
        result = node_hash(sibling, result) if sibling_lo < lo else node_hash(result, sibling)
    return result


def verify_path(root: bytes, tree_size: int, lo: int, size: int, node: bytes, path: Sequence[bytes]) -> None:
    """Raise ProofError unless `path` leads from node (lo, size) with hash `node` to `root`."""
    _require_equal("root of the path", root, root_from_path(tree_size, lo, size, node, path))


def verify_inclusion(root: bytes, tree_size: int, index: int, leaf: bytes, path: Sequence[bytes]) -> None:
    """Raise ProofError unless leaf `index` of the tree (root, tree_size) has the data `leaf` (data, not a hash)."""
    verify_path(root, tree_size, index, 1, leaf_hash(leaf), path)


def verify_consistency(
    old_size: int, new_size: int, old_root: bytes, new_root: bytes, proof: Sequence[bytes]
) -> None:
    """Raise ProofError unless the tree (old_root, old_size) is a prefix of (new_root, new_size).

    The algorithm of RFC 9162 section 2.1.4.2; sizes must satisfy 0 < old_size <= new_size.
    """
    if not 0 < old_size <= new_size:
        raise ProofError("old size", expected=f"a size in [1, {new_size}]", got=old_size)
    for item in proof:
        _require_hash("hash in consistency proof", item)
    if old_size == new_size:
        _require_count("consistency proof", 0, proof)
        _require_equal("new root", old_root, new_root)
        return
    # If the old tree is perfect, it is the proof's first node, left out because the verifier has its root.
    items = [old_root, *proof] if old_size & (old_size - 1) == 0 else list(proof)
    if not items:
        raise ProofError("consistency proof", expected="at least 1 hash", got="none")
    first, last = old_size - 1, new_size - 1
    while first & 1:
        first, last = first >> 1, last >> 1
    old = new = items[0]
    for item in items[1:]:
        if last == 0:
            raise ProofError(
                "consistency proof", expected="no hashes beyond the root", got=f"{len(proof)} hashes"
            )
        if first & 1 or first == last:
            old, new = node_hash(item, old), node_hash(item, new)
            while not first & 1 and first:
                first, last = first >> 1, last >> 1
        else:
            new = node_hash(new, item)
        first, last = first >> 1, last >> 1
    if last:
        raise ProofError(
            "consistency proof", expected="hashes up to the root", got=f"only {len(proof)} hashes"
        )
    _require_equal("old root", old_root, old)
    _require_equal("new root", new_root, new)


def fold_descendants(size: int, levels: int, hashes: Sequence[bytes]) -> bytes:
    """Hash of a node of `size` leaves, computed from the hashes of some of its descendants. `hashes` has the
    hash of each descendant that lies `levels` splits below the node, and of each leaf reached after fewer
    splits, left to right.

    Checks a reveal (dispute.md section 6). Raises ProofError for a wrong number of hashes.
    """
    _require_count("descendants", len(descendants(0, size, levels)), hashes)
    return _fold(size, levels, iter(hashes))


def _fold(size: int, levels: int, hashes: Iterator[bytes]) -> bytes:
    if levels == 0 or size == 1:
        return next(hashes)
    k = split(size)
    left = _fold(k, levels - 1, hashes)
    return node_hash(left, _fold(size - k, levels - 1, hashes))


def _require_count(what: str, expected: int, hashes: Sequence[bytes]) -> None:
    """Raise ProofError unless there are `expected` hashes of 32 bytes each. With other lengths, a byte could
    move from one hash to the next without changing the hashes' concatenation.
    """
    if len(hashes) != expected:
        raise ProofError(what, expected=f"{expected} hashes", got=len(hashes))
    for item in hashes:
        _require_hash(f"hash in {what}", item)


def _require_hash(what: str, value: bytes) -> None:
    if len(value) != HASH_BYTES:
        raise ProofError(what, expected=f"{HASH_BYTES} bytes", got=f"{len(value)} bytes")


def _require_equal(what: str, expected: bytes, got: bytes) -> None:
    if expected != got:
        raise ProofError(what, expected=expected.hex(), got=got.hex())
