"""In which order a solver answers several games."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from solver.defence import by_deadline

CLOCK = 100


def test_the_game_that_asked_first_is_answered_first_whatever_its_number() -> None:
    deadlines = {1: 2 * CLOCK, 2: 3 * CLOCK, 7: CLOCK}
    assert by_deadline(deadlines, deadlines.__getitem__) == [7, 1, 2]


@given(st.permutations(range(8)))
def test_every_move_is_in_time_if_each_takes_a_clock(asked: list[int]) -> None:
    """The chain's queue: the k-th request is due k clocks after all were made."""
    due = {game: (place + 1) * CLOCK for place, game in enumerate(asked)}
    now = 0
    for game in by_deadline(due, due.__getitem__):
        now += CLOCK
        assert now <= due[game]
