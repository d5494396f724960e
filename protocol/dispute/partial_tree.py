"""The known part of the other side's tree, compared with our own tree (dispute.md section 6).

If a known node equals our own, so does everything below it. If it differs, its descendants are learned from a
served list of leaves or from a reveal. A challenger that follows the first differing node down can prove
every node that it needs: nodes to the left of the path equal its own, and nodes to the right were served or
revealed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile

from protocol.commitments import ProofError, Tree, fold_descendants, leaf_hash, node_hash
from protocol.commitments.geometry import Node, descendants, siblings, split

LEVELS = 4
"""Number of levels that one reveal covers: a demanded node is answered with at most 16 hashes."""


class PartialTree:
    """The known part of a tree of `size` leaves with root `root`. `own` is our own version of the tree.

    `own` must have `size` leaves too. If `own` is None, every leaf must be learned.
    """

    def __init__(self, root: bytes, size: int, own: Tree | None) -> None:
        if own is not None and own.size != size:
            raise ProofError("own tree", expected=f"{size} leaves", got=own.size)
        self.root = root
        self.size = size
        self._own = own
        self._known: dict[Node, bytes] = {(0, size): root}
        self._data: dict[int, bytes] = {}
        self._served: Tree | None = None

    def learn_leaves(
        self, leaves: Sequence[bytes], keep: Callable[[bytes, Sequence[bytes]], None] | None = None
    ) -> bool:
        """Take a served list of all leaves' data. Return False and ignore the list if it does not give the
        root.

        `keep` is called with the root and the list before the list is used. If it raises, nothing is learned.
        """
        if len(leaves) != self.size:
            return False
        tree = Tree.from_leaves(leaves)
        if tree.root != self.root:
            return False
        if keep is not None:
            keep(self.root, leaves)
        self._served = tree
        self._data = dict(enumerate(leaves))
        return True

    def learn_descendants(self, node: Node, hashes: Sequence[bytes]) -> None:
        """Take the revealed descendants of a node. Raises ProofError unless they give the node's known hash."""
        lo, size = node
        folded = fold_descendants(size, LEVELS, hashes)
        if folded != self.hash(node):
            raise ProofError("revealed descendants", expected=self.hash(node).hex(), got=folded.hex())
        self._known.update(zip(descendants(lo, size, LEVELS), hashes, strict=True))

    def learn_leaf(self, index: int, data: bytes) -> None:
        """Take a leaf's data. Raises ProofError unless it has the leaf's known hash."""
        if leaf_hash(data) != self.hash((index, 1)):
            raise ProofError("revealed leaf", expected=self.hash((index, 1)).hex(), got=leaf_hash(data).hex())
        self._data[index] = data

    def data(self, index: int) -> bytes | None:
        """A leaf's data if it was served or revealed, else None."""
        return self._data.get(index)

    def hash(self, node: Node) -> bytes:
        """Hash of a node. Raises ProofError if the hash is not known and does not follow from known hashes."""
        if self._served is not None:
            return self._served.node(*node)
        if node in self._known:
            return self._known[node]
        if self._own is not None and self._agreed(node):
            return self._own.node(*node)
        lo, size = node
        if size == 1:
            raise ProofError(
                "node of the other side's tree", expected="a known hash", got=f"leaf {lo} unknown"
            )
        k = split(size)
        return node_hash(self.hash((lo, k)), self.hash((lo + k, size - k)))

    def path(self, lo: int, size: int = 1) -> list[bytes]:
        """Siblings from a node up to the root, bottom first. Raises ProofError if one of them is not known."""
        return [self.hash(node) for node in siblings(self.size, lo, size)]

    def path_beside(self, leaf: int, anchor: int) -> list[bytes]:
        """Siblings on the path from a leaf up to the sibling that contains leaf `anchor`. That sibling itself
        is not included. The list is empty if `leaf` is the anchor.
        """
        if leaf == anchor:
            return []
        above = siblings(self.size, leaf, 1)
        return [self.hash(node) for node in takewhile(lambda n: not n[0] <= anchor < n[0] + n[1], above)]

    def first_difference(self) -> Node | None:
        """Follow the leftmost difference down as far as nodes are known. Return the last node, or None if the
        trees are equal.

        A node of size 1 is the first differing leaf. A larger node must be revealed before the search can
        continue.
        """
        if self._own is None:
            raise ProofError("comparison", expected="an own tree", got="none")
        node: Node = (0, self.size)
        if self.hash(node) == self._own.node(*node):
            return None
        while node[1] > 1:
            below = descendants(*node, 1) if self._served is not None else descendants(*node, LEVELS)
            try:
                node = next(child for child in below if self.hash(child) != self._own.node(*child))
            except ProofError:
                return node
        return node

    def _agreed(self, node: Node) -> bool:
        """Whether this node, or one above it, is known and equals our own."""
        assert self._own is not None
        lo, size = 0, self.size
        while True:
            known = self._known.get((lo, size))
            if known is not None and known == self._own.node(lo, size):
                return True
            if (lo, size) == node or size == 1:
                return False
            k = split(size)
            lo, size = (lo, k) if node[0] < lo + k else (lo + k, size - k)
