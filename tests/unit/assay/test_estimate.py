"""How long replays take is told from steps that were measured."""

from __future__ import annotations

import pytest

from assay.estimate import WARM, Estimate, duration


def test_the_first_steps_do_not_count() -> None:
    now = [0.0]
    estimate = Estimate(100, lambda: now[0])
    for _ in range(WARM):
        now[0] += 50  # compiling
        estimate.step()
    assert estimate.left is None
    for _ in range(10):
        now[0] += 2
        estimate.step()
    assert estimate.measured == 20
    assert estimate.left == pytest.approx(2 * (100 - WARM - 10))


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.2, "0 s"), (119, "119 s"), (120, "2 min"), (7_300, "2 h"), (200_000, "2 days")],
)
def test_a_duration_is_one_number(seconds: float, said: str) -> None:
    assert duration(seconds) == said
