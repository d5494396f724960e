"""RFC 9162 trees over SHA-256, held in memory, with the hashes of all complete nodes.

Implements docs/spec/encoding.md section 2 and RFC 9162 section 2.1. `geometry.py` has the shape of a tree,
`proofs.py` the checks of proofs, `chunks.py` and `roots.py` the meaning of leaves. Not thread-safe while
leaves are being appended to a growing tree.

Level h holds the hashes of the complete nodes [i * 2**h, (i + 1) * 2**h), concatenated in one byte string.
All levels together take 64 bytes per leaf; there is no Python object for each node. The one incomplete node
that a height may have is computed on demand. Complete nodes never change, so a tree of any earlier size reads
the same levels (`progress.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

import numpy as np

from protocol.commitments import geometry
from protocol.commitments.errors import ProofError
from protocol.commitments.geometry import Node
from protocol.commitments.hashing import (
    HASH_BYTES,
    NODE_PREFIX,
    BytesLike,
    hash_rows,
    leaf_hash,
    leaf_hashes,
    node_hash,
)

EMPTY_ROOT = sha256(b"").digest()  # RFC 9162 section 2.1.1: the root of no leaves


class Tree:
    """A Merkle tree of `size` leaves. Build it with one of the `from_` constructors.

    Indices and sizes count leaves; hashes are 32 bytes. Methods raise ProofError for a node, index or size that the
    tree does not have.
    """

    __slots__ = ("_levels", "_size")

    def __init__(self, levels: Sequence[bytes | bytearray], size: int) -> None:
        """`levels` holds the hashes of complete nodes: one byte string for each height, the leaf hashes
        first. They must cover the first `size` leaves, and may cover more.
        """
        self._levels = levels
        self._size = size

    @classmethod
    def from_leaf_hashes(cls, hashes: bytes) -> Tree:
        """Build from concatenated leaf hashes, 32 bytes each."""
        if len(hashes) % HASH_BYTES:
            raise ProofError(
                "leaf hashes",
                expected=f"a multiple of {HASH_BYTES} bytes",
                got=f"{len(hashes)} bytes",
                remedy="pass the 32-byte leaf hashes joined together",
            )
        size = len(hashes) // HASH_BYTES
        levels = [hashes]
        pairs = size // 2
        while pairs:
            rows = np.frombuffer(levels[-1], np.uint8, pairs * 2 * HASH_BYTES).reshape(pairs, 2 * HASH_BYTES)
            levels.append(hash_rows(NODE_PREFIX, rows))
            pairs //= 2
        return cls(levels, size)

    @classmethod
    def from_leaves(cls, leaves: Sequence[bytes]) -> Tree:
        """Build from the leaves' data, in order; leaves may have any lengths."""
        width = len(leaves[0]) if leaves else 0
        if width and all(len(leaf) == width for leaf in leaves):
            return cls.from_rows(b"".join(leaves), width)
        return cls.from_leaf_hashes(b"".join([leaf_hash(leaf) for leaf in leaves]))

    @classmethod
    def from_rows(cls, data: BytesLike, width: int) -> Tree:
        """Build from C-contiguous `data` cut into leaves of `width` bytes; the last leaf may be shorter."""
        return cls.from_leaf_hashes(leaf_hashes(data, width))

    @property
    def size(self) -> int:
        """Number of leaves."""
        return self._size

    @property
    def root(self) -> bytes:
        """Merkle tree hash; for the empty tree, SHA-256 of the empty string."""
        return self._hash((0, self._size)) if self._size else EMPTY_ROOT

    def node(self, lo: int, size: int) -> bytes:
        """Hash of the node that covers leaves [lo, lo + size)."""
        geometry.siblings(self._size, lo, size)  # raises unless it is a node
        return self._hash((lo, size))

    def inclusion_path(self, index: int) -> list[bytes]:
        """Siblings from leaf `index` up to the root, bottom first (RFC 9162 section 2.1.3)."""
        return self.subtree_path(index, 1)

    def subtree_path(self, lo: int, size: int) -> list[bytes]:
        """Siblings from the node (lo, size) up to the root, bottom first."""
        return [self._hash(node) for node in geometry.siblings(self._size, lo, size)]

    def consistency_proof(self, old_size: int, new_size: int | None = None) -> list[bytes]:
        """Proof that the tree of the first `new_size` leaves (default: all) extends the tree of the first
        `old_size`.
        """
        new_size = self._size if new_size is None else new_size
        if new_size > self._size:
            raise ProofError(
                "new size",
                expected=f"at most {self._size}",
                got=new_size,
                remedy="prove to a size the tree has",
            )
        return [self._hash(node) for node in geometry.consistency_nodes(old_size, new_size)]

    def descendants(self, lo: int, size: int, levels: int = 4) -> list[bytes]:
        """Hashes of `geometry.descendants`: the nodes that lie `levels` splits below node (lo, size).

        A reveal in a dispute shows these hashes.
        """
        geometry.siblings(self._size, lo, size)  # raises unless it is a node
        return [self._hash(node) for node in geometry.descendants(lo, size, levels)]

    def _hash(self, node: Node) -> bytes:
        lo, size = node
        height = (size - 1).bit_length()
        if size == 1 << height:
            start = (lo >> height) * HASH_BYTES
            return bytes(self._levels[height][start : start + HASH_BYTES])
        k = geometry.split(size)
        return node_hash(self._hash((lo, k)), self._hash((lo + k, size - k)))
