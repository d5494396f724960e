"""Salted digests of states: a seat attests the digest of the states that it replayed (audit.md section 4).

The trees have the same shape as the solver's (`chunks.py`, `roots.py`); only the chunks' leaves differ. Of
every w chunks (`thinning`), one is selected, and its leaf is a hash of salt and chunk. The leaf of every
other chunk is the zero word. Nodes are not stored: opening a chunk rebuilds one tensor's tree
(`opened_chunks.py`). `turns` gives the path from a chunk to the root.

A tree of n leaves is a row of perfect subtrees, one for each bit of n that is set. If a perfect subtree has
at least w leaves, it is cut into subtrees of w leaves. Each of these has exactly one selected chunk, always
in the same place. Its other leaves are zero words, so all nodes that have only zero words below them are
known in advance. So 1/w of the chunks are hashed, and for each chunk of the tensor about (1 + log2 w) / w
nodes are hashed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from protocol.commitments import hashing
from protocol.commitments.chunks import CHUNK, chunk_count
from protocol.commitments.errors import DigestError
from protocol.commitments.hashing import HASH_BYTES, NODE_PREFIX, BytesLike, node_hash
from protocol.commitments.merkle import Tree
from protocol.commitments.roots import require_root, state_root
from protocol.commitments.salted import hash_rows, leaf, require_salt

__all__ = [
    "MAX_THINNING",
    "Digester",
    "index_of",
    "leaf",
    "seat_digest",
    "segment_path",
    "selected",
    "turns",
]

MAX_THINNING: Final = 64
"""Largest w: a digest then hashes a 64th of each state's chunks."""
_FEW: Final = 16
"""Up to this many nodes, hashing them one by one (0.7 us each) is faster than building an array of them."""
ZERO: Final = bytes(HASH_BYTES)
"""The zero word: the leaf of an unselected chunk."""

Take = Callable[[int, int, int], NDArray[np.uint8]]
"""`take(start, stop, stride)` cuts canonical bytes [start, stop) of a tensor into rows of 1,024 bytes. It
returns the first row and every `stride`-th after it, as u8 `[rows, 1024]`. A short last row is dropped; there
is at least one whole row.
"""


class Block(NamedTuple):
    """A perfect subtree of 2^height leaves. `first` is the index of its first leaf, and `turns` is the path of
    that leaf, as the function `turns` encodes it. `depth` is the depth of all its leaves in the whole tree."""

    first: int
    height: int
    turns: int
    depth: int


@dataclass(frozen=True, slots=True)
class Digester:
    """Roots of tensors and states under `salt` (32 bytes), thinned by `thinning` (a power of two, 1 to 64).

    Raises DigestError for an invalid salt, thinning or step number.
    """

    salt: bytes = field(repr=False)
    thinning: int

    def __post_init__(self) -> None:
        require_salt(self.salt)
        if not 1 <= self.thinning <= MAX_THINNING or self.thinning & (self.thinning - 1):
            raise DigestError(
                "thinning",
                expected=f"a power of two, 1 to {MAX_THINNING}",
                got=self.thinning,
                remedy="take it from the task's terms",
            )

    def tensor_root(self, data: BytesLike, step: int) -> bytes:
        """Root of a tensor, computed from the tensor's canonical bytes. The tensor belongs to state number
        `step` (0 … C) of a segment. Raises ProofError for an empty tensor.
        """
        flat = _flat(data)

        def take(start: int, stop: int, stride: int) -> NDArray[np.uint8]:
            whole = (stop - start) // CHUNK
            return flat[start : start + whole * CHUNK].reshape(whole, CHUNK)[::stride]

        return self.root_of(flat.size, step, take, lambda start: flat[start:].tobytes())

    def state_root(self, tensors: Sequence[BytesLike], step: int) -> bytes:
        """Root of state number `step` of a segment, from the canonical bytes of the state's tensors in the
        program's order.
        """
        return state_root([self.tensor_root(data, step) for data in tensors])

    def tensor_tree(self, data: BytesLike, step: int) -> Tree:
        """The whole tree under `tensor_root`, from which a leaf can be opened; it takes 64 bytes per chunk."""
        flat = _flat(data)
        count, whole = chunk_count(flat.size), flat.size // CHUNK
        rows = flat[: whole * CHUNK].reshape(whole, CHUNK)
        hashes = np.zeros((count, HASH_BYTES), np.uint8)
        for chosen in selected(count, step, self.thinning):
            within = slice(chosen.start, min(chosen.stop, whole), self.thinning)
            found = np.frombuffer(hash_rows(self.salt, rows[within]), np.uint8)
            hashes[within] = found.reshape(-1, HASH_BYTES)
            if whole in chosen:  # the short last chunk
                hashes[whole] = np.frombuffer(leaf(self.salt, flat[whole * CHUNK :].tobytes()), np.uint8)
        return Tree.from_leaf_hashes(hashes.tobytes())

    def root_of(self, nbytes: int, step: int, take: Take, rest: Callable[[int], bytes]) -> bytes:
        """`tensor_root` of a tensor of `nbytes` bytes that is not passed as a whole. Only its selected chunks
        are read: whole chunks by `take`, and a short last chunk by `rest(start)`, which returns all bytes
        from `start` on.
        """
        if step < 0:
            raise DigestError(
                "step", expected="at least 0", got=step, remedy="count states from the segment's first"
            )
        roots = [self._block_root(block, nbytes, step, take, rest) for block in blocks(chunk_count(nbytes))]
        root = roots.pop()
        while roots:
            root = node_hash(roots.pop(), root)
        return root

    def _block_root(
        self, block: Block, nbytes: int, step: int, take: Take, rest: Callable[[int], bytes]
    ) -> bytes:
        selected = -(block.turns + step) % self.thinning  # the first leaf of the block with (c + j) mod w = 0
        if selected >= 1 << block.height:
            return _ZEROS[block.height]
        start = (block.first + selected) * CHUNK
        stop = min((block.first + (1 << block.height)) * CHUNK, nbytes)
        whole = -(-((stop - start) // CHUNK) // self.thinning)
        hashes = hash_rows(self.salt, take(start, stop, self.thinning)) if whole else b""
        short = start + whole * self.thinning * CHUNK
        if short < stop:  # the next selected chunk is the short last one
            hashes += leaf(self.salt, rest(short))
        for height in range(min(block.height, self.thinning.bit_length() - 1)):
            hashes = _beside_zeros(hashes, height, selected >> height & 1)
        return hashes if len(hashes) == HASH_BYTES else Tree.from_leaf_hashes(hashes).root


def seat_digest(segments: Sequence[bytes], result: bytes | None = None) -> bytes:
    """The root of the tree that a seat attests. The leaves are the roots of the step trees of the seat's
    segments, in order, then the root of the result, which is never thinned. A look attests one segment and no
    result.

    Raises DigestError if there are no segments, or several segments and no result, and ProofError for roots
    of the wrong length.
    """
    return _seat_tree(segments, result).root


def segment_path(segments: Sequence[bytes], result: bytes | None, position: int) -> list[bytes]:
    """Siblings from the segment at `position` up to the `seat_digest`, bottom first. For a look, which has
    one segment and no result, there are none.
    """
    return _seat_tree(segments, result).inclusion_path(position)


def _seat_tree(segments: Sequence[bytes], result: bytes | None) -> Tree:
    if not segments or (result is None and len(segments) > 1):
        raise DigestError(
            "segments",
            expected="at least one root"
            if result is not None
            else "one root, a look's, if there is no result",
            got=len(segments),
            remedy="pass those of the seat",
        )
    leaves = segments if result is None else (*segments, result)
    return Tree.from_leaves([require_root("digest's leaf", root) for root in leaves])


def turns(count: int, index: int) -> tuple[int, int]:
    """The path of a leaf in a tree of `count` leaves, as a number c and the leaf's depth.

    Bit i of c is 1 if the i-th sibling on the way up is on the left. In a perfect tree c is the leaf's index. Raises
    DigestError if the tree has no such leaf.
    """
    for block in blocks(count):
        if block.first <= index < block.first + (1 << block.height):
            return block.turns + index - block.first, block.depth
    raise DigestError(
        "leaf", expected=f"an index below {count}", got=index, remedy="name a chunk that the tensor has"
    )


def index_of(count: int, turned: int, depth: int) -> int | None:
    """Inverse of `turns`: the index of the leaf with these turns and this depth; None if the tree has no such leaf."""
    for block in blocks(count):
        if block.depth == depth and 0 <= turned - block.turns < 1 << block.height:
            return block.first + turned - block.turns
    return None


def selected(count: int, step: int, thinning: int) -> list[range]:
    """The chunks that are hashed in state `step` of a segment, for a tensor of `count` chunks, in ascending
    order: one range for each perfect subtree that has selected chunks.
    """
    found = []
    for block in blocks(count):
        first = block.first + -(block.turns + step) % thinning
        if chosen := range(first, block.first + (1 << block.height), thinning):
            found.append(chosen)
    return found


def blocks(count: int) -> Iterator[Block]:
    """The perfect subtrees that make up a tree of `count` leaves, left to right. If the tree is perfect, it
    is the only one. Otherwise the root's left child is the first, and the root's right child is split into
    the others in the same way (RFC 9162 section 2.1).
    """
    first, above, left = 0, 0, 0  # `left` has one 1 bit for each block to the left
    while first < count:
        height = (count - first).bit_length() - 1
        last = first + (1 << height) == count
        # Each block but the last has a sibling on its right, which holds all later blocks.
        turned = left if last else left << 1
        yield Block(first, height, turned << height, height + above + (not last))
        first, above, left = first + (1 << height), above + 1, left << 1 | 1


def _flat(data: BytesLike) -> NDArray[np.uint8]:
    view = memoryview(data).cast("B")
    return np.frombuffer(view, np.uint8) if view.nbytes else np.empty(0, np.uint8)


def _zeros() -> list[bytes]:
    """Roots of perfect trees whose leaves are all zero words, indexed by height."""
    roots = [ZERO]
    while len(roots) < MAX_THINNING.bit_length():
        roots.append(node_hash(roots[-1], roots[-1]))
    return roots


_ZEROS: Final = _zeros()


def _beside_zeros(hashes: bytes, height: int, on_right: int) -> bytes:
    """The hashes of the parents of nodes whose siblings cover only zero words. `hashes` has the nodes'
    hashes, 32 bytes each. `height` is the height of the nodes. `on_right` is 1 if the nodes are right
    children.
    """
    zero = _ZEROS[height]
    if len(hashes) <= _FEW * HASH_BYTES:
        nodes = [hashes[i : i + HASH_BYTES] for i in range(0, len(hashes), HASH_BYTES)]
        return b"".join([node_hash(zero, node) if on_right else node_hash(node, zero) for node in nodes])
    pairs = np.empty((len(hashes) // HASH_BYTES, 2, HASH_BYTES), np.uint8)
    pairs[:, on_right] = np.frombuffer(hashes, np.uint8).reshape(-1, HASH_BYTES)
    pairs[:, 1 - on_right] = np.frombuffer(zero, np.uint8)
    return hashing.hash_rows(NODE_PREFIX, pairs.reshape(-1, 2 * HASH_BYTES))
