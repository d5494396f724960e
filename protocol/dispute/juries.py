"""Juries (audit.md section 7). The account of a seat or look claims that an item is withheld. Jurors then
attest whether they have the item.

An item is a state of the task or the task's constants. The states have the numbers 0 … K, and the constants
have number K + 1. A juror that has the item attests a digest: the root over the item's tensors under the
juror's salt. Every chunk of the item is hashed for this root. The claimant may object. It then names one
chunk, and every juror that attested a digest must open this chunk. The audit board and the salts identify a
seat by its number, and a juror by the number 160 + slot. Pure: randomness is passed in.
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
"""160. Seats and looks have smaller numbers."""
MAX_JURORS: Final = 32
SPARE_CLAIMS: Final = 4
"""In one seat or look, an account may make as many claims as a seat has segments, and this many more: one for
the result, one for the constants, and two for items on which a jury was undecided.
"""
JURY_DRAWS: Final = 128
"""A task that has had this many draws gets no more juries. Draws of seats, draws of looks and draws of juries
all count.
"""
UNAVAILABLE: Final = bytes(32)
"""A juror that could not get the item attests this value twice: once instead of the digest and once instead
of the salt's hash.
"""


class JuryVerdict(IntEnum):
    """A jury's verdict (IJuries.Verdict): AVAILABLE if more than half of the jurors have the item, WITHHELD
    if more than half say that they could not get it, otherwise UNDECIDED.
    """

    AVAILABLE = 0
    WITHHELD = 1
    UNDECIDED = 2


class Objection(NamedTuple):
    """Names the chunk that jurors must open: the number of a tensor of the item, and a walk in that tensor's
    tree (`protocol.commitments.walks`).
    """

    tensor: int
    walk: int


class Shown(NamedTuple):
    """A chunk opened under an item's root and under a juror's digest (IJuries.Opening, in ABI order). Siblings are
    bottom first."""

    chunk: bytes
    path: list[bytes]
    """Siblings of the chunk in the tensor's tree."""
    tensor: Leaf
    """The tensor's root in the item's tree."""
    state: Leaf
    """The item's root in the task's segment tree; `NO_LEAF` for the constants."""
    salted_path: list[bytes]
    """Siblings of the chunk in the tensor's tree under the juror's salt."""
    salted_tensor: list[bytes]
    """Siblings in the tree whose root is the digest. They prove the tensor's leaf there, which is the root of
    the tensor's tree under the juror's salt.
    """


def juror_number(slot: int) -> int:
    """The number that the board and the salts use for the juror in a slot. Raises DisputeError for an invalid
    slot.
    """
    if not 0 <= slot < MAX_JURORS:
        raise DisputeError(
            "juror", expected=f"slot 0 to {MAX_JURORS - 1}", got=slot, remedy="take it from the chain"
        )
    return FIRST_JUROR + slot


def is_juror(number: int) -> bool:
    """Whether one of the board's numbers is a juror's."""
    return number >= FIRST_JUROR


def constants_item(segments: int) -> int:
    """The item number of a task's constants; states have smaller numbers."""
    return segments + 1


def item_of(segment: int) -> int:
    """The item to claim if a segment's data are withheld. It is the state before the segment or, for the
    first segment, the state after it.

    The state before the first segment is never claimed. It is the initial state, which cannot be withheld,
    because it is in the bundle. So for the first segment, a seat can lack only the solver's roots.
    """
    return max(segment - 1, 1)


def most_claims(segments: int) -> int:
    """How many claims an account may make in a seat of `segments` segments, or in a look at such a seat."""
    return segments + SPARE_CLAIMS


def may_object(yes: int, no: int, jurors: int) -> bool:
    """Whether a claimant may object. If it does, the jurors that voted yes must open a chunk. It may object
    if at least one juror voted yes, and at most half of all `jurors` voted no. If more than half voted no,
    yes votes are not paid, so they need no proof.
    """
    return yes > 0 and 2 * no <= jurors


def possession_digest(salt: bytes, tensors: Sequence[BytesLike]) -> bytes:
    """The digest that a juror attests: the root over the item's tensors, under the juror's salt. `tensors`
    holds the tensors' canonical bytes.
    """
    return _digester(salt).state_root(tensors, 0)


def choose_objection(sizes: Sequence[int], generator: Random) -> Objection:
    """Choose uniformly among the chunks of an item whose tensors have these sizes in bytes."""
    counts = [chunk_count(size) for size in sizes]
    number = generator.randrange(sum(counts))
    for tensor, count in enumerate(counts):
        if number < count:
            return Objection(tensor, walk_to(count, number, generator.getrandbits(WALK_BITS)))
        number -= count
    raise AssertionError("there is a chunk for every number")


def choose_unseen(tensors: int, generator: Random) -> Objection:
    """Choose a random tensor of an item and a random walk. This is for a claimant that knows the item's
    number of tensors, but not their sizes.
    """
    return Objection(generator.randrange(tensors), generator.getrandbits(WALK_BITS))


def show(tensors: Sequence[BytesLike], salt: bytes, objection: Objection, state: Leaf = NO_LEAF) -> Shown:
    """Open the chunk that an objection names, with two proofs: one leads to the item's root, the other to the
    digest that a juror attested with this salt. If the item is a state, `state` is its leaf in the segment
    tree.

    Raises DisputeError if the objection names a tensor that the item does not have.
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
