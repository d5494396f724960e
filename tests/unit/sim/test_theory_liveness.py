"""The formulas for redraws of silent seats, compared with sums over the silences of each seat, and checked at
their limits.
"""

from itertools import product
from typing import Any

import pytest

from sim.theory import (
    TheoryError,
    expected_redraws,
    expected_silences,
    least_up,
    stall_probability,
    unfilled_probability,
)


@pytest.mark.parametrize(("verifiers", "up", "redraws"), [(1, 0.7, 0), (2, 0.9, 2), (3, 0.5, 3), (4, 0.8, 1)])
def test_stalls_redraws_and_silences_sum_over_the_seats(verifiers: int, up: float, redraws: int) -> None:
    """The expected values are sums over the number of silent accounts in each seat. R is `redraws`. A seat
    either has up to R silent accounts and then one that answers, or has R + 1 silent accounts. One redraw
    serves all seats.
    """
    down, stalled, again, silent = 1 - up, 0.0, 0.0, 0.0
    for numbers in product(range(redraws + 2), repeat=verifiers):
        chance = 1.0
        for n in numbers:
            chance *= down**n * (up if n <= redraws else 1)
        stalled += chance * (max(numbers) > redraws)
        again += chance * min(max(numbers), redraws)
        # An account that is silent after the last redraw loses nothing.
        silent += chance * sum(min(n, redraws) for n in numbers)
    case: dict[str, Any] = {"verifiers": verifiers, "up": up, "redraws": redraws}
    assert stall_probability(**case) == pytest.approx(stalled, rel=1e-12)
    assert expected_redraws(**case) == pytest.approx(again, rel=1e-12)
    assert expected_silences(**case) == pytest.approx(silent, rel=1e-12)


def test_limits() -> None:
    assert stall_probability(verifiers=3, up=1.0, redraws=0) == 0
    assert stall_probability(verifiers=3, up=0.0, redraws=9) == 1
    assert expected_redraws(verifiers=3, up=0.0, redraws=9) == 9
    assert expected_silences(verifiers=3, up=0.0, redraws=2) == 6
    assert unfilled_probability(bound=1.0) == 1
    assert unfilled_probability(bound=0.5, draws=2) == 2.0**-64


def test_least_up_is_where_stalls_reach_the_target() -> None:
    up = least_up(verifiers=3, redraws=2, stalled=0.05)
    assert stall_probability(verifiers=3, up=up, redraws=2) == pytest.approx(0.05, rel=1e-9)


def test_impossible_audits_are_refused() -> None:
    with pytest.raises(TheoryError, match="verifiers must be at least 1, got 0"):
        stall_probability(verifiers=0, up=1, redraws=1)
    with pytest.raises(TheoryError, match="up must be from 0 to 1"):
        stall_probability(verifiers=2, up=1.5, redraws=1)
