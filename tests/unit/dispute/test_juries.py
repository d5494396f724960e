"""Juries: the number of each juror, digests of possession, the chunk of an objection, and the opening of that
chunk.
"""

from __future__ import annotations

from random import Random

import pytest
from eth_utils.crypto import keccak
from hypothesis import given
from hypothesis import strategies as st

from protocol.commitments import CHUNK, chunk_count, leaf_hash, state_root, tensor_root
from protocol.commitments.digests import Digester, leaf, turns
from protocol.commitments.opened_chunks import fold
from protocol.commitments.proofs import root_from_path
from protocol.commitments.walks import WALK_BITS, chunk_at
from protocol.dispute.errors import DisputeError
from protocol.dispute.juries import (
    FIRST_JUROR,
    UNAVAILABLE,
    Objection,
    choose_objection,
    choose_unseen,
    constants_item,
    is_juror,
    juror_number,
    may_object,
    most_claims,
    possession_digest,
    show,
)
from protocol.dispute.keys import attestation_word
from protocol.dispute.looks import Look, is_look
from tests.unit.commitments.patterns import pattern

SALT = bytes(range(32))
SIZES = st.sampled_from([1, 31, 1023, 1024, 1025, 2048, 5000, 7 * 1024, 9 * 1024 - 1, 70_000])


def test_a_jurors_number_is_no_seats_and_no_looks() -> None:
    assert [juror_number(slot) for slot in (0, 31)] == [160, 191]
    assert Look(4, 31).number + 1 == FIRST_JUROR
    assert [(is_juror(n), is_look(n)) for n in (31, 159, 160, 191)] == [
        (False, False),
        (False, True),
        (True, False),
        (True, False),
    ]


@pytest.mark.parametrize("slot", [-1, 32])
def test_a_slot_that_there_is_not_has_no_number(slot: int) -> None:
    with pytest.raises(DisputeError, match="juror: expected slot 0 to 31"):
        juror_number(slot)


def test_the_constants_come_after_the_states() -> None:
    assert constants_item(segments=3) == 4, "the states are 0 to 3"


@pytest.mark.parametrize(
    ("yes", "no", "jurors", "may"),
    [
        (0, 0, 3, False),
        (1, 0, 3, True),
        (1, 1, 3, True),
        (1, 2, 3, False),
        (1, 16, 32, True),
        (31, 0, 31, True),
    ],
)
def test_any_yes_may_be_objected_to_but_where_most_said_no(yes: int, no: int, jurors: int, may: bool) -> None:
    assert may_object(yes, no, jurors) is may


def test_a_seat_may_claim_every_item_that_it_needs() -> None:
    assert [most_claims(segments) - (segments + 2) for segments in (1, 14, 64)] == [2, 2, 2]


@given(
    sizes=st.lists(SIZES, min_size=1, max_size=5), walk=st.integers(0, (1 << WALK_BITS) - 1), data=st.data()
)
def test_what_is_shown_folds_to_the_items_root_and_to_the_digest(
    sizes: list[int], walk: int, data: st.DataObject
) -> None:
    """A chunk that a juror shows folds to the item's root and to the juror's digest. As in the contract, the
    first bits of the walk say on which side each sibling is, one bit for each sibling.
    """
    tensors = [pattern(nbytes, number) for number, nbytes in enumerate(sizes)]
    tensor = data.draw(st.integers(0, len(sizes) - 1))
    shown = show(tensors, SALT, Objection(tensor, walk))
    depth = len(shown.path)
    turned = walk >> (WALK_BITS - depth)
    assert (turned, depth) == turns(chunk_count(sizes[tensor]), chunk_at(chunk_count(sizes[tensor]), walk))
    assert depth == len(shown.salted_path)
    plain = fold(leaf_hash(shown.chunk), turned, shown.path)
    assert plain == tensor_root(tensors[tensor]) == shown.tensor.value
    root = root_from_path(len(sizes), tensor, 1, leaf_hash(plain), shown.tensor.path)
    assert root == state_root([tensor_root(item) for item in tensors])
    salted = fold(leaf(SALT, shown.chunk), turned, shown.salted_path)
    digest = root_from_path(len(sizes), tensor, 1, leaf_hash(salted), shown.salted_tensor)
    assert digest == possession_digest(SALT, tensors)


def test_a_juror_without_the_item_attests_the_zero_word() -> None:
    assert attestation_word(UNAVAILABLE, UNAVAILABLE) == keccak(bytes(64))


def test_nothing_is_left_out_of_a_digest_of_possession() -> None:
    tensors = [pattern(5 * CHUNK, 1), pattern(7, 2)]
    due = possession_digest(SALT, tensors)
    assert due == Digester(SALT, 1).state_root(tensors, 0)
    for number in range(5):
        changed = bytearray(tensors[0])
        changed[number * CHUNK] ^= 1
        assert possession_digest(SALT, [changed, tensors[1]]) != due


def test_an_item_is_shown_only_of_tensors_that_it_has() -> None:
    with pytest.raises(DisputeError, match="expected 0 to 0"):
        show([b"one"], SALT, Objection(1, 0))


def test_each_chunk_is_objected_to_as_often_as_any_other() -> None:
    sizes, tries = [1, 3 * CHUNK, 6 * CHUNK + 5], 11_000
    counts = [chunk_count(size) for size in sizes]
    seen: dict[tuple[int, int], int] = {}
    generator = Random(1)
    for _ in range(tries):
        found = choose_objection(sizes, generator)
        place = found.tensor, chunk_at(counts[found.tensor], found.walk)
        seen[place] = seen.get(place, 0) + 1
    assert len(seen) == sum(counts) == 11
    # 1,000 of each are expected in 11,000 tries. A count is off by 122 with a chance of about 10^-4.
    assert all(abs(times - tries / 11) < 140 for times in seen.values())


def test_of_an_item_that_nobody_knows_any_tensor_is_asked_for() -> None:
    generator = Random(2)
    found = [choose_unseen(3, generator) for _ in range(100)]
    assert {one.tensor for one in found} == {0, 1, 2}
    assert len({one.walk for one in found}) == 100
