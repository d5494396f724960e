"""Draws and attestations: uniform subsets, each duty once, and `satisfied` against the contract's own loop."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.mechanism.attestation import attested, satisfied
from sim.mechanism.draw import Draw, by_account, complete, distinct, replaced

Duty = tuple[int, int, bool]
"""Verifier, segment, attested."""


@pytest.mark.parametrize(("segments", "each"), [(1, 1), (4, 1), (5, 2), (6, 3), (6, 5), (7, 7)])
def test_every_subset_of_segments_is_drawn_equally_often(segments: int, each: int) -> None:
    draws = distinct(np.random.default_rng(7).random((each, 60_000)), segments)
    subsets = dict.fromkeys(combinations(range(1, segments + 1), each), 0)
    for subset in map(tuple, np.sort(draws, axis=0).T.tolist()):
        subsets[subset] += 1  # KeyError: a number twice, or out of bounds.
    expected, freedom = 60_000 / len(subsets), len(subsets) - 1
    surprise = sum((count - expected) ** 2 for count in subsets.values()) / expected
    assert surprise <= freedom + 4 * (2 * freedom) ** 0.5  # Chi-square: its mean, and 4 standard deviations.


@given(st.integers(1, 1 << 20), st.integers(1, 64), st.sampled_from([0.0, 0.5, 1 - 2**-53]))
def test_numbers_at_the_edges_give_distinct_segments(segments: int, each: int, luck: float) -> None:
    each = min(each, segments)
    found = distinct(np.full((each, 2, 3), luck), segments)[:, 1, 2].tolist()
    assert len(set(found)) == each
    assert min(found) >= 1
    assert max(found) <= segments


@st.composite
def seats(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, int]:
    """Verifiers (V, rows), segments (q, V, rows) and K, small enough that much happens twice."""
    last, count, rows = draw(st.integers(1, 6)), draw(st.integers(1, 5)), draw(st.integers(1, 4))
    each = draw(st.integers(1, last))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    who = generator.integers(0, draw(st.integers(1, 6)), size=(count, rows))
    return who, distinct(generator.random((each, count, rows)), last), last


def duties(drawn: Draw, row: int) -> list[tuple[int, int]]:
    """What is due, in the board's order."""
    each, count, _ = drawn.due.shape
    return [
        (int(drawn.verifiers[seat, row]), int(drawn.segments[duty, seat, row]))
        for seat in range(count)
        for duty in range(each)
        if drawn.due[duty, seat, row]
    ]


@given(seats())
def test_duties_are_those_that_the_board_adds(given_seats: tuple[np.ndarray, np.ndarray, int]) -> None:
    """AuditBoard._drawDuties and _add, in plain Python."""
    who, what, last = given_seats
    drawn = complete(who, what, last)
    for row in range(who.shape[1]):
        expected: list[tuple[int, int]] = []
        for seat, verifier in enumerate(who[:, row].tolist()):
            for segment in [last, *what[:, seat, row].tolist()]:
                if (verifier, segment) not in expected:
                    expected.append((verifier, segment))
        assert duties(drawn, row) == expected
        assert drawn.duties[:, row].sum() == len(expected)


@given(seats())
def test_an_account_has_the_number_of_its_first_seat(given_seats: tuple[np.ndarray, np.ndarray, int]) -> None:
    who, _, _ = given_seats
    luck = np.random.default_rng(1).random(who.shape)
    found = by_account(who, luck.copy())
    for row in range(who.shape[1]):
        seats = who[:, row].tolist()
        assert found[:, row].tolist() == [luck[seats.index(verifier), row] for verifier in seats]


@given(seats(), st.integers(0, 2**32))
def test_new_holders_take_no_duty_from_whoever_has_answered(
    given_seats: tuple[np.ndarray, np.ndarray, int], seed: int
) -> None:
    """The answered seats come first, in plain Python; each duty is still there once."""
    who, what, last = given_seats
    generator = np.random.default_rng(seed)
    silent = generator.random(who.shape) < 0.5
    others = np.where(silent, generator.integers(0, 6, size=who.shape), who)
    before = complete(who, what, last)
    drawn = replaced(before, others, silent, last)
    assert (drawn.verifiers == others).all()
    assert (drawn.segments == before.segments).all()
    assert (drawn.due >= before.due & ~silent).all()
    for row in range(who.shape[1]):
        expected: dict[tuple[int, int], int] = {}
        for seat in np.argsort(silent[:, row], kind="stable").tolist():
            for segment in [last, *what[:, seat, row].tolist()]:
                expected.setdefault((int(others[seat, row]), segment), seat)
        found = {
            (int(others[seat, row]), int(drawn.segments[duty, seat, row])): int(seat)
            for duty, seat in np.argwhere(drawn.due[:, :, row])
        }
        assert found == expected
        assert drawn.due[:, :, row].sum() == len(expected)


def board_satisfied(found: list[Duty], matches: int) -> bool:
    """AuditBoard.satisfied and _count, in plain Python, but for segment K: it needs at most what was drawn of it."""
    for _, segment, _ in found:
        of_segment = [duty for duty in found if duty[1] == segment]
        drawn, done = len(of_segment), sum(duty[2] for duty in of_segment)
        every = drawn < matches
        if done < (drawn if every else matches):
            return False
    return True


@given(seats(), st.integers(1, 5), st.integers(0, 2**32), st.floats(0, 1))
def test_satisfied_is_the_boards(
    given_seats: tuple[np.ndarray, np.ndarray, int], matches: int, seed: int, rate: float
) -> None:
    who, what, last = given_seats
    drawn = complete(who, what, last)
    done = drawn.due & (np.random.default_rng(seed).random(drawn.due.shape) < rate)
    enough = satisfied(drawn, done, matches)
    for row in range(who.shape[1]):
        found = [
            (int(who[seat, row]), int(drawn.segments[duty, seat, row]), bool(done[duty, seat, row]))
            for duty, seat in np.argwhere(drawn.due[:, :, row])
        ]
        assert bool(enough[row]) == board_satisfied(found, matches)


def test_satisfied_at_the_most_duties_that_a_task_has() -> None:
    """V = 64, q = 1: 128 duties on one segment do not overflow the count."""
    drawn = complete(np.arange(64)[:, None], np.full((1, 64, 1), 2, dtype=np.int32), 3)
    for attesting, enough in ((64, True), (63, False)):
        attests = (np.arange(64) < attesting)[:, None]
        assert satisfied(drawn, attested(drawn, attests), 64).tolist() == [enough]


def test_a_seat_attests_all_of_its_duties_or_none() -> None:
    drawn = complete(np.array([[0], [1]]), np.array([[[1], [2]]], dtype=np.int32), 2)
    assert drawn.due[:, :, 0].tolist() == [[True, True], [True, False]]
    assert attested(drawn, np.array([[True], [False]]))[:, :, 0].tolist() == [[True, False], [True, False]]
