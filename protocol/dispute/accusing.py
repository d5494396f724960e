"""A looker's evidence when it accuses a seat: one chunk of the states that the solver committed to.

See audit.md section 6. A looker accuses a seat only if its own states equal the solver's; otherwise it
plays a game against the solver. Pure: `States` replays the states, and randomness is passed in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from protocol.commitments import CHUNK, BytesLike, chunk, chunk_count, tensor_tree
from protocol.commitments.digests import selected
from protocol.commitments.opened_chunks import Place, open_chunk_of
from protocol.dispute.openings import Leaf

_ROWS: Final = 1 << 14
"""Number of chunks compared at a time: 16 MiB."""

Indices = NDArray[np.int64]
Bytes = NDArray[np.uint8]


class States(Protocol):
    """The states of one segment, computed on demand."""

    def tensors(self, step: int, /) -> Sequence[BytesLike]:
        """Canonical bytes of the tensors of state `step` (0 … C). The caller reads each tensor once. A tensor
        may be computed at the moment it is read.
        """


class Chunk(NamedTuple):
    """A chunk of a segment, by index: state (0 … C), tensor in the state, chunk in the tensor."""

    step: int
    tensor: int
    chunk: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """A chunk opened under the solver's step tree, as `Looks.accuse` takes it."""

    place: Place
    chunk: bytes
    path: tuple[bytes, ...]
    """Siblings of the chunk in its tensor's tree."""
    tensor: Leaf
    """The tensor's root in the state tree."""
    state: Leaf
    """The state's root in the step tree."""


def choose_place(states: States, sizes: Sequence[int], steps: int, thinning: int, generator: Random) -> Chunk:
    """Choose a chunk: if possible, one that a seat can know only if it has computed the chunk's state.

    Such a chunk was changed by the step that led to its state, and its hash is in the digest. The states 1 …
    C - 1 are tried in random order, or the states 0 … C if the digest hashes nothing in states 1 … C - 1. The
    choice is uniform among the suitable chunks of the first state that has any. If no state has one, any
    hashed chunk of a random state is chosen. `sizes` are the sizes of the state's tensors in bytes, and
    `steps` is C. At most two states are held at a time, and only one tensor's bytes of each.
    """
    counts = [chunk_count(size) for size in sizes]
    # The set of hashed chunks repeats every w states.
    hashed = [any(selected(count, step, thinning) for count in counts) for step in range(thinning)]
    known = [step for step in range(1, steps) if hashed[step % thinning]]
    known = known or [step for step in range(steps + 1) if hashed[step % thinning]]
    for step in generator.sample(known, len(known)):
        if step and (found := _changed(states, step, thinning)):
            return _any_of(step, found, generator)
    step = generator.choice(known)
    return _any_of(step, [_hashed(count, step, thinning) for count in counts], generator)


def evidence(
    data: BytesLike, at: Chunk, tensor_roots: Sequence[bytes], state_roots: Sequence[bytes]
) -> Evidence:
    """Open a chunk under the solver's step tree.

    `data` holds the canonical bytes of the chunk's tensor, `tensor_roots` the roots of the tensors of its
    state, and `state_roots` the roots of all states of the segment. Raises ProofError unless these belong
    together.
    """
    opening = open_chunk_of(tensor_tree(data), at.chunk, tensor_roots, at.tensor, state_roots, at.step)
    return Evidence(
        opening.place,
        chunk(data, at.chunk),
        opening.chunk_path,
        Leaf(tensor_roots[at.tensor], list(opening.tensor_path)),
        Leaf(state_roots[at.step], list(opening.state_path)),
    )


def _changed(states: States, step: int, thinning: int) -> list[Indices]:
    """A list with an entry for each tensor: the indices of those chunks that are hashed in state `step` and
    differ from state `step` - 1. If no tensor has such a chunk, the list has no entries. The states are
    released on return.
    """
    pairs = zip(states.tensors(step - 1), states.tensors(step), strict=True)
    found = [_differing(_flat(before), _flat(after), step, thinning) for before, after in pairs]
    return found if any(map(len, found)) else []


def _differing(before: Bytes, after: Bytes, step: int, thinning: int) -> Indices:
    count, whole = chunk_count(after.size), after.size // CHUNK
    old, new = (x[: whole * CHUNK].reshape(whole, CHUNK) for x in (before, after))
    found = [np.empty(0, np.int64)]
    for chosen in selected(count, step, thinning):
        for first in range(chosen.start, min(chosen.stop, whole), _ROWS * thinning):
            last = min(first + _ROWS * thinning, chosen.stop, whole)
            rows = slice(first, last, thinning)
            found.append(np.arange(first, last, thinning)[(old[rows] != new[rows]).any(axis=1)])
        if whole in chosen and (before[whole * CHUNK :] != after[whole * CHUNK :]).any():  # the short one
            found.append(np.array([whole]))
    return np.concatenate(found)


def _hashed(count: int, step: int, thinning: int) -> Indices:
    """The chunks of a tensor of `count` chunks that are hashed in state `step`."""
    ranges = selected(count, step, thinning)
    return np.concatenate([np.empty(0, np.int64), *(np.arange(r.start, r.stop, r.step) for r in ranges)])


def _any_of(step: int, found: Sequence[Indices], generator: Random) -> Chunk:
    """Choose uniformly among the chunks in `found`, which holds the indices of chunks for each tensor."""
    number = generator.randrange(sum(map(len, found)))
    for tensor, indices in enumerate(found):
        if number < len(indices):
            return Chunk(step, tensor, int(indices[number]))
        number -= len(indices)
    raise AssertionError("there is a chunk for every number")


def _flat(data: BytesLike) -> Bytes:
    return np.frombuffer(memoryview(data).cast("B"), np.uint8)
