"""Builds the trees above tensors (docs/spec/encoding.md section 2).

Each `…_tree` function builds a `Tree`, from which the caller opens leaves or takes `.root`. It raises
ProofError if there are no leaves. The functions whose leaves are roots, which are all but `program_tree`,
also raise it for a root that does not have 32 bytes. The tree over a tensor's bytes is in `chunks.py`, the
growing segment tree in `progress.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from protocol.commitments.errors import ProofError
from protocol.commitments.hashing import HASH_BYTES
from protocol.commitments.merkle import Tree


def state_tree(tensor_roots: Sequence[bytes]) -> Tree:
    """Tree of one state: leaf i is the tensor root of the program's i-th state tensor."""
    return _tree_of_roots("tensor root", tensor_roots)


def state_root(tensor_roots: Sequence[bytes]) -> bytes:
    """Root of `state_tree`: the 32 bytes that commit to a checkpoint."""
    return state_tree(tensor_roots).root


def step_tree(state_roots: Sequence[bytes]) -> Tree:
    """Tree inside one segment of C steps: leaf j is the state root s_j, j = 0..C."""
    return _tree_of_roots("state root", state_roots)


def segment_tree(state_roots: Sequence[bytes]) -> Tree:
    """Tree of one run of K segments: leaf i is the state root r_i of checkpoint i, i = 0..K."""
    return _tree_of_roots("state root", state_roots)


def constants_tree(tensor_roots: Sequence[bytes]) -> Tree:
    """Tree of a task's constants: its leaves are the tensor roots of the dataset's tensors, then those of the
    constants.
    """
    return _tree_of_roots("tensor root", tensor_roots)


def trace_tree(value_roots: Sequence[bytes]) -> Tree:
    """Tree of one run of a program: leaf n is the tensor root of value n, in the program's leaf order."""
    return _tree_of_roots("value root", value_roots)


def program_tree(instructions: Sequence[bytes]) -> Tree:
    """Tree of a program: leaf n is the encoding of instruction n."""
    return _non_empty("instruction", instructions)


def require_root(what: str, root: bytes) -> bytes:
    """Return `root` if it is 32 bytes long, else raise ProofError naming `what`."""
    if len(root) != HASH_BYTES:
        raise ProofError(
            what,
            expected=f"{HASH_BYTES} bytes",
            got=f"{len(root)} bytes",
            remedy="pass the root itself, not its hex form or the value's bytes",
        )
    return root


def _tree_of_roots(what: str, roots: Sequence[bytes]) -> Tree:
    return _non_empty(what, [require_root(what, root) for root in roots])


def _non_empty(what: str, leaves: Sequence[bytes]) -> Tree:
    if not leaves:
        raise ProofError(what, expected="at least one", got="none", remedy="an empty tree commits to nothing")
    return Tree.from_leaves(leaves)
