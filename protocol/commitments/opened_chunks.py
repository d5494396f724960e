"""Opens a chunk of a segment's states. An opening holds the hash of the chunk's leaf, and the siblings on the
path from this leaf up to the root of the step tree.

The path goes through three trees: the tree of the tensor's chunks, the tree of the state's tensors, and the
step tree of the segment's states. The trees have the same shape in the solver's commitment
(encoding.md section 2) and in a seat's salted digest (audit.md section 4); only the chunks' leaves differ. A
place gives turns and depth instead of the chunk's index, because the contracts do not know a tensor's number
of chunks. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from protocol.commitments.digests import turns
from protocol.commitments.errors import ProofError
from protocol.commitments.hashing import leaf_hash, node_hash
from protocol.commitments.merkle import Tree
from protocol.commitments.proofs import root_from_path
from protocol.commitments.roots import state_tree, step_tree


class Place(NamedTuple):
    """Where a chunk is in a segment, in ABI order: the number of the state (0 … C), the number of the tensor,
    and the turns and the depth of the chunk's leaf.
    """

    step: int
    tensor: int
    turns: int
    depth: int


@dataclass(frozen=True, slots=True)
class Opening:
    """A leaf's hash at a place, and its siblings in each tree, bottom first."""

    place: Place
    leaf: bytes
    chunk_path: tuple[bytes, ...]
    tensor_path: tuple[bytes, ...]
    state_path: tuple[bytes, ...]

    def tensor_root(self) -> bytes:
        """Root of the chunk's tensor. Raises ProofError if the length of the chunk's path is not the place's
        depth, or if the place's turns have more bits than its depth.
        """
        if len(self.chunk_path) != self.place.depth:
            raise ProofError(
                "path of the chunk", expected=f"{self.place.depth} hashes", got=len(self.chunk_path)
            )
        return fold(self.leaf, self.place.turns, self.chunk_path)

    def state_root(self, tensors: int) -> bytes:
        """Root of the chunk's state, which has `tensors` tensors. Raises ProofError if the state has no
        tensor with this place's number, if a path has the wrong length, or if the place's turns have more
        bits than its depth.
        """
        leaf = leaf_hash(self.tensor_root())
        return root_from_path(tensors, self.place.tensor, 1, leaf, self.tensor_path)

    def step_root(self, tensors: int, states: int) -> bytes:
        """Root of the step tree, given the number of tensors of a state and the number of states (C + 1). The
        contract computes the same root. Raises ProofError if there is no such state or tensor, if a path has
        the wrong length, or if the place's turns have more bits than its depth.
        """
        return root_from_path(
            states, self.place.step, 1, leaf_hash(self.state_root(tensors)), self.state_path
        )


def open_chunk_of(
    chunks: Tree,
    index: int,
    tensor_roots: Sequence[bytes],
    tensor: int,
    state_roots: Sequence[bytes],
    step: int,
) -> Opening:
    """Open chunk `index` of tensor number `tensor` in state `step` of a segment.

    `chunks` is the tensor's tree (from `tensor_tree` or a `Digester`), `tensor_roots` are the roots of the
    state's tensors, `state_roots` those of all the segment's states. Raises DigestError if the tensor has
    no such chunk, and ProofError unless the opening leads to the root of the step tree.
    """
    states, steps = state_tree(tensor_roots), step_tree(state_roots)
    turned, depth = turns(chunks.size, index)
    opening = Opening(
        Place(step, tensor, turned, depth),
        chunks.node(index, 1),
        tuple(chunks.inclusion_path(index)),
        tuple(states.inclusion_path(tensor)),
        tuple(steps.inclusion_path(step)),
    )
    found = opening.step_root(states.size, steps.size)
    if found != steps.root:
        raise ProofError(
            f"chunk {index} of tensor {tensor} in state {step}",
            expected=f"the step tree's root {steps.root.hex()}",
            got=found.hex(),
            remedy="pass the tensor's own tree, and roots of the same replay",
        )
    return opening


def fold(node: bytes, turned: int, path: Sequence[bytes]) -> bytes:
    """The root computed from a node and its siblings, bottom first. Bit i of `turned` is 1 if sibling i is on
    the left.

    Raises ProofError if `turned` has more bits than there are siblings. If the extra bits were ignored, one
    place would have several names.
    """
    if turned >> len(path):
        raise ProofError("turns", expected=f"below 2^{len(path)}", got=turned)
    for i, sibling in enumerate(path):
        node = node_hash(sibling, node) if turned >> i & 1 else node_hash(node, sibling)
    return node
