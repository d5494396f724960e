"""The append-only segment tree: what a solver commits while it trains.

Each progress report (dispute.md section 2, "progress") is the pair (root, size) of the segment tree, with an
RFC 9162 proof that the tree is consistent with the one in the previous report. The leaves are the 32-byte
state roots r_0, r_1, ... of the checkpoints. This module holds no checkpoints and sends nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from protocol.commitments.errors import ProofError
from protocol.commitments.hashing import HASH_BYTES, leaf_hash, node_hash
from protocol.commitments.merkle import Tree
from protocol.commitments.roots import require_root


class ProgressTree:
    """A segment tree that grows by one state root at a time. An append takes two hashes on average."""

    def __init__(self, state_roots: Iterable[bytes] = ()) -> None:
        self._levels: list[bytearray] = [bytearray()]
        for root in state_roots:
            self.append(root)

    def append(self, state_root: bytes) -> None:
        """Add the state root of the next checkpoint (32 bytes); earlier trees and proofs stay valid."""
        self._levels[0] += leaf_hash(require_root("state root", state_root))
        height = 0
        while len(self._levels[height]) % (2 * HASH_BYTES) == 0:
            pair = bytes(self._levels[height][-2 * HASH_BYTES :])
            if height + 1 == len(self._levels):
                self._levels.append(bytearray())
            self._levels[height + 1] += node_hash(pair[:HASH_BYTES], pair[HASH_BYTES:])
            height += 1

    @property
    def size(self) -> int:
        """Number of state roots so far."""
        return len(self._levels[0]) // HASH_BYTES

    @property
    def root(self) -> bytes:
        """Root of all state roots so far."""
        return self.at(self.size).root

    def at(self, size: int) -> Tree:
        """The tree of the first `size` state roots, to open leaves under an earlier committed root."""
        if not 0 <= size <= self.size:
            raise ProofError(
                "progress size",
                expected=f"0 to {self.size}",
                got=size,
                remedy="ask for a size already committed",
            )
        return Tree(self._levels, size)

    def consistency_proof(self, old_size: int) -> list[bytes]:
        """Proof that the tree committed at `old_size` is a prefix of the current one."""
        return self.at(self.size).consistency_proof(old_size)
