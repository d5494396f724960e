"""Shape of an RFC 9162 tree: which nodes exist, which are siblings, and which a proof contains. No hashes
here.

A node is a pair (lo, size): it covers leaves [lo, lo + size). A node of size n > 1 splits into its first k
leaves and the rest, where k is the largest power of two smaller than n (RFC 9162 section 2.1.1). There is no
padding. The contracts walk the same split (docs/spec/encoding.md section 2, dispute.md section 6), so both
agree on every size.
"""

from __future__ import annotations

from protocol.commitments.errors import ProofError

Node = tuple[int, int]


def split(size: int) -> int:
    """Size of the left child of a node of `size` >= 2 leaves: the largest power of two below `size`."""
    return 1 << ((size - 1).bit_length() - 1)


def siblings(tree_size: int, lo: int, size: int) -> list[Node]:
    """Siblings on the path from node (lo, size) up to the root, bottom first.

    A sibling whose lo is smaller than the node's is on the left, otherwise on the right. Raises ProofError if
    (lo, size) is not a node of a tree of `tree_size` leaves.
    """
    found: list[Node] = []
    start, width = 0, tree_size
    while (start, width) != (lo, size):
        if size < 1 or width <= size or lo < start or lo + size > start + width:
            raise ProofError(
                "no such node",
                expected=f"a node of RFC 9162's split of {tree_size} leaves",
                got=f"leaves [{lo}, {lo + size})",
                remedy="name a node that the split produces",
            )
        k = split(width)
        if lo < start + k:
            found.append((start + k, width - k))
            width = k
        else:
            found.append((start, k))
            start, width = start + k, width - k
    found.reverse()
    return found


def consistency_nodes(old_size: int, new_size: int) -> list[Node]:
    """Nodes whose hashes make the consistency proof from `old_size` to `new_size` leaves, in the order of RFC
    9162 section 2.1.4.1.

    Raises ProofError unless 0 < old_size <= new_size.
    """
    if not 0 < old_size <= new_size:
        raise ProofError(
            "no consistency proof between these sizes",
            expected=f"an old size in [1, {new_size}]",
            got=old_size,
            remedy="prove from an earlier, non-empty tree to a later one",
        )
    found: list[Node] = []
    start, width, old = 0, new_size, old_size
    while old != width:
        k = split(width)
        if old <= k:
            found.append((start + k, width - k))
            width = k
        else:
            found.append((start, k))
            start, width, old = start + k, width - k, old - k
    if start > 0:
        # If the path never went right, the last common subtree is the old tree, whose root the verifier has.
        found.append((start, width))
    found.reverse()
    return found


def descendants(lo: int, size: int, levels: int = 4) -> list[Node]:
    """The nodes that lie `levels` splits below node (lo, size), left to right. Where the tree ends at a leaf
    above that depth, the leaf is included.

    There are at most 2**levels of them. With the default, these are the nodes of a reveal, at most 16
    (dispute.md section 6).
    """
    nodes = [(lo, size)]
    for _ in range(levels):
        nodes = [child for node in nodes for child in _children(*node)]
    return nodes


def _children(lo: int, size: int) -> list[Node]:
    if size == 1:
        return [(lo, size)]
    k = split(size)
    return [(lo, k), (lo + k, size - k)]
