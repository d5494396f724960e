"""The thinning of a task's digests (audit.md section 4)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.commitments.digests import Digester
from protocol.tasks.thinning import MOST, OPERATIONS_A_BYTE, digesting_share, recommended_thinning

COUNTS = st.integers(1, 1 << 40)


def test_a_share_counts_chunks_nodes_and_the_state_before_the_first_step() -> None:
    assert digesting_share(1, 10, 34 * OPERATIONS_A_BYTE, 1) == pytest.approx(1.1 * 36 / 34 / 34)
    assert digesting_share(64, 1, 34 * OPERATIONS_A_BYTE, 64) == pytest.approx(2 * 48 / 34 / 34)


@pytest.mark.parametrize(
    ("segment_steps", "step_operations", "state_bytes", "thinning"),
    [
        (20, 195_236_252_934, 130_129_944, 4),  # the GPT of 10.8M: 14.9 %, 7.9 %, 4.2 %
        (20, 1_000_000_000_000, 130_129_944, 1),
        (20, 1, 1, 16),  # never cheap enough: the greatest thinning for C
        (1, 1, 1, 1),
        (10_000, 1, 1, 64),
    ],
)
def test_thinnings_of_some_tasks(
    segment_steps: int, step_operations: int, state_bytes: int, thinning: int
) -> None:
    assert recommended_thinning(segment_steps, step_operations, state_bytes) == thinning


@given(segment_steps=st.integers(1, 1 << 16), step_operations=COUNTS, state_bytes=COUNTS)
def test_it_is_the_least_that_is_cheap_enough(
    segment_steps: int, step_operations: int, state_bytes: int
) -> None:
    found = recommended_thinning(segment_steps, step_operations, state_bytes)
    Digester(bytes(32), found)  # accepts it
    assert found <= segment_steps

    def is_cheap(thinning: int) -> bool:
        return digesting_share(thinning, segment_steps, step_operations, state_bytes) <= MOST

    assert is_cheap(found) or 2 * found > min(64, segment_steps)
    assert found == 1 or not is_cheap(found // 2)
