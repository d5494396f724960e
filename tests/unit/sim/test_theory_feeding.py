"""The bytes that are fed to a seat, compared with the chunks that a digest hashes."""

import pytest

from protocol.commitments.digests import selected
from sim.theory import fed_bytes, feeding_price


def hashed(chunks: int, steps: int, thinning: int) -> int:
    """The number of hashed chunks of one tensor, counted over all states of a segment."""
    return sum(len(found) for step in range(steps + 1) for found in selected(chunks, step, thinning))


@pytest.mark.parametrize("chunks", [1, 5, 64, 97, 1000])
@pytest.mark.parametrize(("steps", "thinning"), [(7, 4), (15, 16), (3, 1), (63, 32)])
def test_fed_bytes_are_those_that_are_hashed(chunks: int, steps: int, thinning: int) -> None:
    assert fed_bytes(chunks, steps, thinning) == hashed(chunks, steps, thinning)


@pytest.mark.parametrize("chunks", [1, 37, 500])
@pytest.mark.parametrize(("steps", "thinning"), [(20, 4), (5, 8), (100, 64)])
def test_where_w_does_not_divide_the_states_it_is_off_by_less_than_one(
    chunks: int, steps: int, thinning: int
) -> None:
    assert abs(fed_bytes(chunks, steps, thinning) - hashed(chunks, steps, thinning)) < chunks


def test_feeding_costs_a_replay_at_its_price() -> None:
    assert feeding_price(6, 100, 19, 4) * fed_bytes(100, 19, 4) == pytest.approx(6)
