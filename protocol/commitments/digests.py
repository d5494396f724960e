"""Digests of states under a salt: what a seat attests about the states that it replayed (audit.md section 4).

The trees have the shape of the solver's (`chunks.py`, `roots.py`); only a chunk's leaf differs: a hash of chunk and
salt, or, for all but one chunk in `thinning`, the zero word. Nodes are not stored: opening a chunk rebuilds one
tensor's tree (`opened_chunks.py`). `turns` says where a chunk is in its tree.

A tree of n leaves is a row of perfect subtrees, one for each bit of n. In a perfect subtree of at least w leaves each
subtree of w holds exactly one hash, always in the same place, and everything else in it is known in advance; so 1/w
of the chunks are hashed, and about (1 + log2 w) / w nodes a chunk.
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
"""Largest w: a party that keeps only the chunks that one step selects keeps a 64th of the states."""
_FEW: Final = 16
"""Below this number of nodes, hashing them singly (0.7 us each) is faster than making their table."""
ZERO: Final = bytes(HASH_BYTES)
"""Takes the place of the hash of an unselected chunk."""

Take = Callable[[int, int, int], NDArray[np.uint8]]
"""`take(start, stop, stride)`: canonical bytes [start, stop) of a tensor, cut into rows of 1,024 of which the first and
then every `stride`-th is taken; u8 `[rows, 1024]`. A short last row is left out; there is at least one whole one."""


class Block(NamedTuple):
    """A perfect subtree of 2^height leaves, whose first leaf has the turns `turns`; `depth` is its leaves' depth."""

    first: int
    height: int
    turns: int
    depth: int


@dataclass(frozen=True, slots=True)
class Digester:
    """Roots of tensors and states under `salt` (32 bytes), thinned by `thinning` (a power of two, 1 to 64).

    Raises DigestError for any other salt, thinning or number of a step.
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
        """Root of a tensor's canonical bytes (at least 1, else ProofError) in state `step` of its segment, 0 … C."""
        flat = _flat(data)

        def take(start: int, stop: int, stride: int) -> NDArray[np.uint8]:
            whole = (stop - start) // CHUNK
            return flat[start : start + whole * CHUNK].reshape(whole, CHUNK)[::stride]

        return self.root_of(flat.size, step, take, lambda start: flat[start:].tobytes())

    def state_root(self, tensors: Sequence[BytesLike], step: int) -> bytes:
        """Root of state `step` of its segment; its tensors have these canonical bytes, in the program's order."""
        return state_root([self.tensor_root(data, step) for data in tensors])

    def tensor_tree(self, data: BytesLike, step: int) -> Tree:
        """The tree of `tensor_root`, with all of its leaves (64 bytes a chunk in all), for opening one."""
        flat = _flat(data)
        count, whole = chunk_count(flat.size), flat.size // CHUNK
        rows = flat[: whole * CHUNK].reshape(whole, CHUNK)
        hashes = np.zeros((count, HASH_BYTES), np.uint8)
        for chosen in selected(count, step, self.thinning):
            within = slice(chosen.start, min(chosen.stop, whole), self.thinning)
            found = np.frombuffer(hash_rows(self.salt, rows[within]), np.uint8)
            hashes[within] = found.reshape(-1, HASH_BYTES)
            if whole in chosen:  # the short one
                hashes[whole] = np.frombuffer(leaf(self.salt, flat[whole * CHUNK :].tobytes()), np.uint8)
        return Tree.from_leaf_hashes(hashes.tobytes())

    def root_of(self, nbytes: int, step: int, take: Take, rest: Callable[[int], bytes]) -> bytes:
        """`tensor_root` of `nbytes` bytes of which only the selected chunks are read: whole ones by `take`, the short
        last one by `rest(start)`, the bytes from `start` on.
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
        if short < stop:  # the next selected chunk, which is not whole
            hashes += leaf(self.salt, rest(short))
        for height in range(min(block.height, self.thinning.bit_length() - 1)):
            hashes = _beside_zeros(hashes, height, selected >> height & 1)
        return hashes if len(hashes) == HASH_BYTES else Tree.from_leaf_hashes(hashes).root


def seat_digest(segments: Sequence[bytes], result: bytes | None = None) -> bytes:
    """The root that a seat attests: over the roots of its segments' step trees, in the order of the segments, then the
    root of the result, which is never thinned. A look attests its one segment, and no result.

    DigestError for no segments, or several without a result; ProofError for roots of other lengths.
    """
    return _seat_tree(segments, result).root


def segment_path(segments: Sequence[bytes], result: bytes | None, position: int) -> list[bytes]:
    """Siblings of the segment at a position of `segments` up to their `seat_digest`, bottom first; none in a look's."""
    return _seat_tree(segments, result).inclusion_path(position)


def _seat_tree(segments: Sequence[bytes], result: bytes | None) -> Tree:
    if not segments or (result is None and len(segments) > 1):
        raise DigestError(
            "segments",
            expected="at least one root"
            if result is not None
            else "one root, a look's, where there is no result",
            got=len(segments),
            remedy="pass those of the seat",
        )
    leaves = segments if result is None else (*segments, result)
    return Tree.from_leaves([require_root("digest's leaf", root) for root in leaves])


def turns(count: int, index: int) -> tuple[int, int]:
    """The number c of a leaf, and its depth, in a tree of `count` leaves.

    Bit i of c is 1 where the i-th sibling on the way up is on the left; in a perfect tree c is the leaf's index. Raises
    DigestError when the tree has no such leaf.
    """
    for block in blocks(count):
        if block.first <= index < block.first + (1 << block.height):
            return block.turns + index - block.first, block.depth
    raise DigestError(
        "leaf", expected=f"an index below {count}", got=index, remedy="name a chunk that the tensor has"
    )


def index_of(count: int, turned: int, depth: int) -> int | None:
    """Inverse of `turns`: the leaf with these turns and this depth; None where the tree has none."""
    for block in blocks(count):
        if block.depth == depth and 0 <= turned - block.turns < 1 << block.height:
            return block.first + turned - block.turns
    return None


def selected(count: int, step: int, thinning: int) -> list[range]:
    """The chunks of a tensor of `count` that are hashed in state `step` of a segment, ascending: a range for each
    perfect subtree that has some.
    """
    found = []
    for block in blocks(count):
        first = block.first + -(block.turns + step) % thinning
        if chosen := range(first, block.first + (1 << block.height), thinning):
            found.append(chosen)
    return found


def blocks(count: int) -> Iterator[Block]:
    """The perfect subtrees of a tree of `count` leaves, left to right: the root joins the first to all others, their
    root joins the second to those behind it, and so on (RFC 9162 section 2.1)."""
    first, above, left = 0, 0, 0  # `left`: as many ones as there are blocks on the left
    while first < count:
        height = (count - first).bit_length() - 1
        last = first + (1 << height) == count
        # Other blocks than the last have all that follow them on their right.
        turned = left if last else left << 1
        yield Block(first, height, turned << height, height + above + (not last))
        first, above, left = first + (1 << height), above + 1, left << 1 | 1


def _flat(data: BytesLike) -> NDArray[np.uint8]:
    view = memoryview(data).cast("B")
    return np.frombuffer(view, np.uint8) if view.nbytes else np.empty(0, np.uint8)


def _zeros() -> list[bytes]:
    """Roots of perfect trees of zero words, by height."""
    roots = [ZERO]
    while len(roots) < MAX_THINNING.bit_length():
        roots.append(node_hash(roots[-1], roots[-1]))
    return roots


_ZEROS: Final = _zeros()


def _beside_zeros(hashes: bytes, height: int, on_right: int) -> bytes:
    """The parents of nodes of this height, each beside a tree of zero words."""
    zero = _ZEROS[height]
    if len(hashes) <= _FEW * HASH_BYTES:
        nodes = [hashes[i : i + HASH_BYTES] for i in range(0, len(hashes), HASH_BYTES)]
        return b"".join([node_hash(zero, node) if on_right else node_hash(node, zero) for node in nodes])
    pairs = np.empty((len(hashes) // HASH_BYTES, 2, HASH_BYTES), np.uint8)
    pairs[:, on_right] = np.frombuffer(hashes, np.uint8).reshape(-1, HASH_BYTES)
    pairs[:, 1 - on_right] = np.frombuffer(zero, np.uint8)
    return hashing.hash_rows(NODE_PREFIX, pairs.reshape(-1, 2 * HASH_BYTES))
