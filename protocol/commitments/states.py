"""A checkpoint in memory: the ordered list of a state's tensors, and the trees over them (encoding.md section 2).

`checkpoints` stores it on disk. Nothing here needs more than numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from protocol.commitments.chunks import tensor_tree
from protocol.commitments.errors import CheckpointError
from protocol.commitments.merkle import Tree
from protocol.commitments.roots import state_tree
from protocol.commitments.tensors import Tensor


class Checkpoint:
    """A state as ordered tensors with distinct names. Its trees are built on first use and kept."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        require_names([tensor.name for tensor in tensors])
        self.tensors = tuple(tensors)

    @cached_property
    def trees(self) -> tuple[Tree, ...]:
        """One tree over chunks for each tensor, in the tensors' order. The trees serve to open chunks."""
        return tuple(tensor_tree(tensor.data) for tensor in self.tensors)

    @cached_property
    def state_tree(self) -> Tree:
        """The tree whose leaf i is the root of tensor i."""
        return state_tree([tree.root for tree in self.trees])

    @property
    def state_root(self) -> bytes:
        """The 32 bytes that a solver commits for this state."""
        return self.state_tree.root


def require_names(names: Sequence[str]) -> None:
    """Raise CheckpointError if there are no names, or if a name occurs twice."""
    if not names or len(set(names)) != len(names):
        raise CheckpointError(
            "checkpoint",
            expected="at least one tensor and distinct names",
            got=f"{len(names)} tensors, {len(set(names))} names",
            remedy="name every tensor of the state once",
        )
