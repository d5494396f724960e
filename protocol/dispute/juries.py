"""Juries: what a seat claims to be withheld, which chunk of it an objection names, and what a juror shows of it.

Board and salts know a juror by one number, 160 + slot, instead of a seat's. A claim is about an item: a state of the
task by its number, 0 … K, or its constants, K + 1. A juror that says it has the item attests the root of its tensors
under its salt, with every chunk hashed. Pure: randomness is passed in.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from random import Random
from typing import Final, NamedTuple

from protocol.commitments import BytesLike, chunk, chunk_count, state_tree, tensor_root, tensor_tree
from protocol.commitments.digests import Digester
from protocol.commitments.walks import WALK_BITS, chunk_at, walk_to
from protocol.dispute.errors import DisputeError
from protocol.dispute.looks import LEVELS, MAX_LOOKS
from protocol.dispute.openings import NO_LEAF, Leaf

FIRST_JUROR: Final = MAX_LOOKS * (LEVELS + 1)
"""160: numbers below are those of seats and looks."""
MAX_JURORS: Final = 32
SPARE_CLAIMS: Final = 4
"""Further claims of an account in one seat or look, besides one for each of the seat's segments: for the result, for
the constants, and for two items that a jury could not decide on.
"""
JURY_DRAWS: Final = 128
"""A task that has had that many draws has no more juries."""
UNAVAILABLE: Final = bytes(32)
"""Takes the place of the digest and of the salt's hash if the juror could not get the item."""


class JuryVerdict(IntEnum):
    """What a jury finds (IJuries.Verdict): more than half of it has the item, could not get it, or neither."""

    AVAILABLE = 0
    WITHHELD = 1
    UNDECIDED = 2


class Objection(NamedTuple):
    """The chunk that jurors are to open: a tensor of the item, and a walk in its tree (`walks`)."""

    tensor: int
    walk: int


class Shown(NamedTuple):
    """A chunk under an item's root and under a juror's digest (IJuries.Opening, ABI order); siblings bottom first."""

    chunk: bytes
    path: list[bytes]
    """In the tensor's tree."""
    tensor: Leaf
    """The tensor's root in the item's tree."""
    state: Leaf
    """The item's root in the task's segment tree; `NO_LEAF` of the constants."""
    salted_path: list[bytes]
    """In the tensor's tree under the juror's salt."""
    salted_tensor: list[bytes]
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


def constants_item(segments: int) -> int:
    """The number of the item that is a task's constants; the states have those below."""
    return segments + 1


def item_of(segment: int) -> int:
    """The state before a replayed segment. The first state is in the bundle, so for the first segment it is the state
    after it, which shows that the roots are available.
    """
    return max(segment - 1, 1)


def most_claims(segments: int) -> int:
    """How often an account may claim in a seat of that many segments, or in a look at one."""
    return segments + SPARE_CLAIMS


def may_object(yes: int, no: int, jurors: int) -> bool:
    """Whether a claimant may require those that voted yes, this many, to open a chunk: some of them would be paid."""
    return yes > 0 and 2 * no <= jurors


def possession_digest(salt: bytes, tensors: Sequence[BytesLike]) -> bytes:
    """What a juror attests of an item: the root over its tensors, canonical bytes, under the juror's salt."""
    return _digester(salt).state_root(tensors, 0)


def choose_objection(sizes: Sequence[int], generator: Random) -> Objection:
    """A chunk of an item whose tensors have that many bytes, all with the same chance."""
    counts = [chunk_count(size) for size in sizes]
    number = generator.randrange(sum(counts))
    for tensor, count in enumerate(counts):
        if number < count:
            return Objection(tensor, walk_to(count, number, generator.getrandbits(WALK_BITS)))
        number -= count
    raise AssertionError("there is a chunk for every number")


def choose_unseen(tensors: int, generator: Random) -> Objection:
    """The same for an item of which only the number of tensors is known."""
    return Objection(generator.randrange(tensors), generator.getrandbits(WALK_BITS))


def show(tensors: Sequence[BytesLike], salt: bytes, objection: Objection, state: Leaf = NO_LEAF) -> Shown:
    """The chunk that an objection names, of an item's tensors, under its root and under the digest of this salt.
    `state` is where a state is in the segment tree.

    Raises DisputeError where the item has no such tensor.
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
        plain.inclusion_path(index),
        Leaf(plain.root, roots.inclusion_path(objection.tensor)),
        state,
        salted.inclusion_path(index),
        digests.inclusion_path(objection.tensor),
    )


def _digester(salt: bytes) -> Digester:
    return Digester(salt, thinning=1)
