"""The parts of the solver's trees that a challenger knows because they were served or revealed on-chain
(dispute.md section 6).

Revealed parts can be read from the chain at any time. Served parts may be impossible to get a second time. In
particular, a challenger still needs a trace at a time when it can no longer demand the trace. So the trace is
kept in a `LeafStore` before a move is made with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from protocol.commitments import Tree
from protocol.dispute.partial_tree import PartialTree
from protocol.dispute.view import DemandedNode


class LeafStore(Protocol):
    """Stores lists of leaves. A list holds all leaves of one tree, with 32 bytes for each leaf. It is stored
    under the tree's root and outlives the process.
    """

    def get(self, root: bytes, size: int, /) -> Sequence[bytes] | None:
        """The stored list for a tree of `size` leaves; None if none is stored. The caller checks the list
        against the root.
        """

    def put(self, root: bytes, leaves: Sequence[bytes], /) -> None:
        """Store the leaves of the tree with this root. They are on the disk when this returns. Raises OSError."""


class Revealed:
    """The answers that the contract has accepted, and the `PartialTree`s that learn from them. An answer that
    arrives before its tree is used is applied later.

    A root alone does not identify a tree, because a solver may post the same root for its step tree, for a
    trace and for a value. So answers are stored under three things: the root of their tree, the size of the
    tree, and `bytes_total`. `bytes_total` is the length of the value in bytes, or 0 for a tree whose leaves
    have 32 bytes. It keeps apart trees whose leaves have different lengths: an answer about one of them
    cannot be used in the other.

    The key of a `PartialTree` also includes the root of our own tree with which it is compared.
    """

    def __init__(self, kept: LeafStore | None = None) -> None:
        """`kept` holds served traces. Without it, served traces are lost with this object."""
        self._kept = kept
        self._nodes: dict[tuple[bytes, int, int], list[tuple[DemandedNode, Sequence[bytes] | bytes]]] = {}
        self._trees: dict[tuple[bytes, int, int, bytes], PartialTree] = {}
        self._replayed: dict[tuple[bytes, int, int, bytes], int] = {}
        self._asked: set[tuple[bytes, int, int, bytes]] = set()

    def reveal(
        self,
        root: bytes,
        size: int,
        node: DemandedNode,
        answer: Sequence[bytes] | bytes,
        bytes_total: int = 0,
    ) -> None:
        """Record an answer that the contract has accepted: descendants, or a leaf's bytes."""
        self._nodes.setdefault((root, size, bytes_total), []).append((node, answer))

    def tree(
        self,
        root: bytes,
        own: Tree,
        ask: Callable[[], Sequence[bytes] | None] | None = None,
        keep: bool = False,
        bytes_total: int = 0,
    ) -> PartialTree:
        """The solver's tree with this root, compared with our own.

        `ask` requests all leaves from the solver. It is called only once for a tree, and not at all if the
        roots are equal, if the leaves were kept, or if a reveal has already arrived. Leaves that do not give
        the root are ignored. With `keep`, leaves of 32 bytes are kept before they are used. Raises OSError if
        keeping them fails; the next call then asks again.
        """
        name = (root, own.size, bytes_total, own.root)
        known = self._trees.get(name)
        if known is None:
            known = self._trees[name] = PartialTree(root, own.size, own)
        answers = self._nodes.get((root, own.size, bytes_total), [])
        done = self._replayed.get(name, 0)
        for node, answer in answers[done:]:
            if isinstance(answer, bytes):
                known.learn_leaf(node.lo, answer)
            else:
                known.learn_descendants((node.lo, node.size), answer)
        self._replayed[name] = len(answers)
        if ask is not None and name not in self._asked and root != own.root:
            kept = self._kept if keep else None
            stored = None if kept is None else kept.get(root, own.size)
            if (stored is None or not known.learn_leaves(stored)) and not answers:
                leaves = ask()
                if leaves is not None:
                    known.learn_leaves(leaves, None if kept is None else kept.put)
            self._asked.add(name)
        return known
