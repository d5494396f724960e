"""What a challenger has learned of the solver's trees, by service or by reveal (dispute.md section 6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from protocol.commitments import Tree
from protocol.dispute.known import KnownTree
from protocol.dispute.view import DemandedNode


class Heard:
    """Reveals by the root of their tree. They may arrive before the tree is looked at, and are replayed then."""

    def __init__(self) -> None:
        self._nodes: dict[bytes, list[tuple[DemandedNode, Sequence[bytes] | bytes]]] = {}
        self._trees: dict[bytes, KnownTree] = {}
        self._replayed: dict[bytes, int] = {}
        self._asked: set[bytes] = set()

    def reveal(self, root: bytes, node: DemandedNode, answer: Sequence[bytes] | bytes) -> None:
        """Note an answer that the contract has accepted: descendants, or a leaf's bytes."""
        self._nodes.setdefault(root, []).append((node, answer))

    def tree(
        self, root: bytes, own: Tree, ask: Callable[[], Sequence[bytes] | None] | None = None
    ) -> KnownTree:
        """The tree with this root beside one's own.

        The first time, and only while nothing was demanded, the solver is asked for all leaves by `ask`; an answer
        that does not give the root is dropped.
        """
        known = self._trees.get(root)
        if known is None:
            known = self._trees[root] = KnownTree(root, own.size, own)
        answers = self._nodes.get(root, [])
        done = self._replayed.get(root, 0)
        for node, answer in answers[done:]:
            if isinstance(answer, bytes):
                known.learn_leaf(node.lo, answer)
            else:
                known.learn_descendants((node.lo, node.size), answer)
        self._replayed[root] = len(answers)
        if ask is not None and not answers and root not in self._asked and root != own.root:
            self._asked.add(root)
            leaves = ask()
            if leaves is not None:
                known.learn_leaves(leaves)
        return known
