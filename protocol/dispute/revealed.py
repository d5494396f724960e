"""The parts of the solver's trees that a challenger knows, served or revealed on-chain (dispute.md section 6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from protocol.commitments import Tree
from protocol.dispute.partial_tree import PartialTree
from protocol.dispute.view import DemandedNode


class Revealed:
    """Reveals, by the root and size of their tree. A reveal that arrives before its tree is used is applied later.

    A root alone does not identify a tree: a solver may post the same root for its step tree and for a trace. So the
    key of a `PartialTree` includes the root of our own tree, with which it is compared.
    """

    def __init__(self) -> None:
        self._nodes: dict[tuple[bytes, int], list[tuple[DemandedNode, Sequence[bytes] | bytes]]] = {}
        self._trees: dict[tuple[bytes, int, bytes], PartialTree] = {}
        self._replayed: dict[tuple[bytes, int, bytes], int] = {}
        self._asked: set[tuple[bytes, int, bytes]] = set()

    def reveal(self, root: bytes, size: int, node: DemandedNode, answer: Sequence[bytes] | bytes) -> None:
        """Record an answer that the contract has accepted: descendants, or a leaf's bytes."""
        self._nodes.setdefault((root, size), []).append((node, answer))

    def tree(
        self, root: bytes, own: Tree, ask: Callable[[], Sequence[bytes] | None] | None = None
    ) -> PartialTree:
        """The solver's tree with this root, compared with our own.

        `ask` requests all leaves from the solver. It is called only once for a tree, and not if the roots
        are equal or a reveal has already arrived. Leaves that do not give the root are ignored.
        """
        name = (root, own.size, own.root)
        known = self._trees.get(name)
        if known is None:
            known = self._trees[name] = PartialTree(root, own.size, own)
        answers = self._nodes.get((root, own.size), [])
        done = self._replayed.get(name, 0)
        for node, answer in answers[done:]:
            if isinstance(answer, bytes):
                known.learn_leaf(node.lo, answer)
            else:
                known.learn_descendants((node.lo, node.size), answer)
        self._replayed[name] = len(answers)
        if ask is not None and not answers and name not in self._asked and root != own.root:
            self._asked.add(name)
            leaves = ask()
            if leaves is not None:
                known.learn_leaves(leaves)
        return known
