"""A second implementation of docs/spec/encoding.md section 2, by recursion over lists, with hashlib alone."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256


class PlainTrees:
    """Trees as RFC 9162 section 2.1 states them. This is slow."""

    def leaf(self, data: bytes) -> bytes:
        return sha256(b"\0" + data).digest()

    def above(self, left: bytes, right: bytes) -> bytes:
        return sha256(b"\1" + left + right).digest()

    def split(self, size: int) -> int:
        """The largest power of two below the size."""
        return 1 << (size - 1).bit_length() - 1

    def root(self, leaves: Sequence[bytes]) -> bytes:
        if len(leaves) == 1:
            return self.leaf(leaves[0])
        k = self.split(len(leaves))
        return self.above(self.root(leaves[:k]), self.root(leaves[k:]))

    node = root

    def inclusion_path(self, leaves: Sequence[bytes], index: int) -> list[bytes]:
        if len(leaves) == 1:
            return []
        k = self.split(len(leaves))
        if index < k:
            return [*self.inclusion_path(leaves[:k], index), self.root(leaves[k:])]
        return [*self.inclusion_path(leaves[k:], index - k), self.root(leaves[:k])]

    def root_from_path(
        self, tree_size: int, lo: int, size: int, node: bytes, path: Sequence[bytes]
    ) -> bytes | None:
        if (lo, size) == (0, tree_size):
            return None if path or size == 0 else node
        if not path or size == 0 or not 0 <= lo < lo + size <= tree_size:
            return None
        k = self.split(tree_size)
        if lo < k < lo + size:
            return None
        if lo < k:
            below = self.root_from_path(k, lo, size, node, path[:-1])
            return below and self.above(below, path[-1])
        below = self.root_from_path(tree_size - k, lo - k, size, node, path[:-1])
        return below and self.above(path[-1], below)

    def consistency_proof(self, leaves: Sequence[bytes], old_size: int) -> list[bytes]:
        return self._proof(leaves, old_size, known=True)

    def _proof(self, leaves: Sequence[bytes], old_size: int, *, known: bool) -> list[bytes]:
        """SUBPROOF of RFC 9162. `known`: the reader knows the root of the first `old_size` leaves."""
        if old_size == len(leaves):
            return [] if known else [self.root(leaves)]
        k = self.split(len(leaves))
        if old_size <= k:
            return [*self._proof(leaves[:k], old_size, known=known), self.root(leaves[k:])]
        return [*self._proof(leaves[k:], old_size - k, known=False), self.root(leaves[:k])]

    def consistent(
        self, old_size: int, new_size: int, old_root: bytes, new_root: bytes, proof: Sequence[bytes]
    ) -> bool:
        """Whether the proof, read from its end, gives both roots."""
        if not 0 < old_size <= new_size:
            return False
        found = self._roots(old_size, new_size, list(proof), old_root, known=True)
        return found == (old_root, new_root)

    def _roots(
        self, old_size: int, size: int, proof: list[bytes], old_root: bytes, *, known: bool
    ) -> tuple[bytes, bytes] | None:
        """The root of a node's first `old_size` leaves and the root of all its leaves. None if the proof's
        length is wrong.
        """
        if old_size == size:
            if known:
                return None if proof else (old_root, old_root)
            return (proof[0], proof[0]) if len(proof) == 1 else None
        if not proof:
            return None
        k = self.split(size)
        if old_size <= k:
            found = self._roots(old_size, k, proof[:-1], old_root, known=known)
            return found and (found[0], self.above(found[1], proof[-1]))
        found = self._roots(old_size - k, size - k, proof[:-1], old_root, known=False)
        return found and (self.above(proof[-1], found[0]), self.above(proof[-1], found[1]))

    def fold_descendants(self, size: int, descendants: Sequence[bytes]) -> bytes:
        return self._fold(size, 4, list(descendants))

    def _fold(self, size: int, levels: int, hashes: list[bytes]) -> bytes:
        if size == 1 or levels == 0:
            (only,) = hashes
            return only
        k = self.split(size)
        left = self._count(k, levels - 1)
        return self.above(
            self._fold(k, levels - 1, hashes[:left]), self._fold(size - k, levels - 1, hashes[left:])
        )

    def _count(self, size: int, levels: int) -> int:
        """The number of a node's descendants `levels` levels down."""
        if size == 1 or levels == 0:
            return 1
        k = self.split(size)
        return self._count(k, levels - 1) + self._count(size - k, levels - 1)

    def tensor_root(self, data: bytes) -> bytes:
        return self.root([data[i : i + 1024] for i in range(0, len(data), 1024)])
