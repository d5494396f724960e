"""Juries: what a seat claims to be withheld, which chunk of it an objection names, and what a juror shows of it.

A juror is known to board and salts by one number, 160 + slot, in the place of a seat's. What is claimed is an object: a
state of the task by its number, 0 … K, or its constants, K + 1. A juror that says it has the object attests the root
of its tensors under its salt, of which nothing is left out. Pure: randomness is passed in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, NamedTuple

from protocol.commitments import BytesLike, chunk, chunk_count, state_tree, tensor_root, tensor_tree
from protocol.commitments.digests import Digester
from protocol.commitments.walks import WALK_BITS, chunk_at, walk_to
from protocol.dispute.errors import DisputeError

FIRST_JUROR: Final = 160
"""Numbers below are those of seats and looks."""
MAX_JURORS: Final = 32
UNAVAILABLE: Final = bytes(32)
"""In place of digest and of the salt's hash: the juror could not get the object."""


class Objection(NamedTuple):
    """The chunk that jurors are to open: a tensor of the object, and a walk in its tree (`walks`)."""

    tensor: int
    walk: int


@dataclass(frozen=True, slots=True)
class Shown:
    """A chunk under an object's root and under a juror's digest, as `Juries.open` takes it; siblings bottom first."""

    chunk: bytes
    chunk_path: tuple[bytes, ...]
    """In the tensor's tree."""
    tensor_path: tuple[bytes, ...]
    """Of the tensor's root in the object's tree."""
    salted_chunk_path: tuple[bytes, ...]
    """In the tensor's tree under the juror's salt."""
    salted_tensor_path: tuple[bytes, ...]
    """Of the root of that in the digest."""


def juror_number(slot: int) -> int:
    """What board and salts call the juror of a slot. Raises DisputeError where there is no such slot."""
    if not 0 <= slot < MAX_JURORS:
        raise DisputeError(
            "juror", expected=f"slot 0 to {MAX_JURORS - 1}", got=slot, remedy="take it from the chain"
        )
    return FIRST_JUROR + slot


def is_juror(number: int) -> bool:
    """Whether a number of the board is a juror's."""
    return number >= FIRST_JUROR


def constants_object(segments: int) -> int:
    """The number of the object that is a task's constants; the states have those below."""
    return segments + 1


def is_upheld(votes: int, jurors: int) -> bool:
    """Whether so many of a jury say that the object can be had, and so it can: more than half."""
    return 2 * votes > jurors


def possession_digest(salt: bytes, tensors: Sequence[BytesLike]) -> bytes:
    """What a juror attests of an object: the root over its tensors, canonical bytes, under the juror's salt."""
    return _digester(salt).state_root(tensors, 0)


def choose_objection(sizes: Sequence[int], generator: Random) -> Objection:
    """A chunk of an object whose tensors have so many bytes, all with the same chance."""
    counts = [chunk_count(size) for size in sizes]
    number = generator.randrange(sum(counts))
    for tensor, count in enumerate(counts):
        if number < count:
            return Objection(tensor, walk_to(count, number, generator.getrandbits(WALK_BITS)))
        number -= count
    raise AssertionError("there is a chunk for every number")


def choose_unseen(tensors: int, generator: Random) -> Objection:
    """The same of an object of which nothing is known but the number of its tensors."""
    return Objection(generator.randrange(tensors), generator.getrandbits(WALK_BITS))


def show(tensors: Sequence[BytesLike], salt: bytes, objection: Objection) -> Shown:
    """The chunk that an objection names, of an object's tensors, under its root and under the digest of this salt.

    Raises DisputeError where the object has no such tensor.
    """
    if not 0 <= objection.tensor < len(tensors):
        raise DisputeError(
            "tensor of the objection",
            expected=f"0 to {len(tensors) - 1}",
            got=objection.tensor,
            remedy="take it from the chain",
        )
    digester, data = _digester(salt), tensors[objection.tensor]
    plain, salted = tensor_tree(data), digester.tensor_tree(data, 0)
    index = chunk_at(plain.size, objection.walk)
    roots = state_tree([tensor_root(other) for other in tensors])
    digests = state_tree([digester.tensor_root(other, 0) for other in tensors])
    return Shown(
        chunk(data, index),
        tuple(plain.inclusion_path(index)),
        tuple(roots.inclusion_path(objection.tensor)),
        tuple(salted.inclusion_path(index)),
        tuple(digests.inclusion_path(objection.tensor)),
    )


def _digester(salt: bytes) -> Digester:
    return Digester(salt, thinning=1)
