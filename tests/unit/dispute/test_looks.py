"""Each look has a number, from which its seat, segment and leaf follow. A number that stands for no look is
refused.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.commitments import verify_inclusion
from protocol.commitments.digests import seat_digest, segment_path
from protocol.dispute.errors import DisputeError
from protocol.dispute.looks import Look, is_look

LOOKS = st.builds(Look, st.integers(1, 4), st.integers(0, 31))
EACH = st.integers(1, 32)


@given(LOOKS)
def test_a_number_stands_for_one_look(look: Look) -> None:
    assert Look.of(look.number) == look
    assert look.number == 32 * look.level + look.slot
    assert is_look(look.number)


@given(LOOKS, EACH)
def test_a_look_repeats_the_segment_of_its_slot_and_looks_one_level_down(look: Look, each: int) -> None:
    assert look.slot == look.seat(each) * each + look.position(each)
    below = look.below
    if below is None:
        assert look.level == 1
        assert look.looked_at(each) == look.seat(each)
        assert not is_look(look.looked_at(each))
    else:
        assert below == (look.level - 1, look.slot)
        assert Look.of(look.looked_at(each)) == below
        assert look.looked_at(each) == look.number - 32


@given(LOOKS, st.integers(1, 8))
def test_a_looks_segment_is_in_the_digest_that_it_looks_at(look: Look, each: int) -> None:
    segments, result = [bytes([number]) * 32 for number in range(each)], b"\xff" * 32
    own = segments[look.position(each)]
    index, size = look.leaf(each)
    roots, held = (segments, result) if look.below is None else ([own], None)
    path = segment_path(roots, held, index)
    verify_inclusion(seat_digest(roots, held), size, index, own, path)


@pytest.mark.parametrize("number", [-1, 0, 31, 160])
def test_a_number_that_is_no_looks_is_refused(number: int) -> None:
    with pytest.raises(DisputeError, match="look: expected level 1 to 4"):
        Look.of(number)


@pytest.mark.parametrize("look", [Look(0, 0), Look(5, 0), Look(1, 32), Look(1, -1)])
def test_a_look_that_there_is_not_has_no_number(look: Look) -> None:
    with pytest.raises(DisputeError, match="look: expected level 1 to 4"):
        _ = look.number
