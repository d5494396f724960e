"""How accounts are drawn with a draw's seed: the order of the slots, the limit on tries, the exclusion of
bound accounts, and the picking of looks.
"""

from __future__ import annotations

from collections import Counter

import pytest

from protocol.tasks.draws import below, picks, words
from sim.mechanism.draw import NOBODY
from sim.replay.drawing import found, holders, looked


def seeds(count: int) -> list[bytes]:
    return [number.to_bytes(32, "big") for number in range(count)]


def test_slots_are_those_of_the_highest_level_first() -> None:
    assert holders([4, 1, 2, 4]) == [0] * 4 + [3] * 4 + [2] * 2 + [1]
    assert holders([1 << 15]) == [0] * (1 << 15)


def test_the_first_seat_is_the_holder_of_the_first_word() -> None:
    for seed in seeds(20):
        assert found(words(seed), [1, 2, 8], 1, ()) == [holders([1, 2, 8])[below(words(seed), 11)]]


def test_seats_are_distinct_and_nobody_bound_has_one() -> None:
    seen: Counter[tuple[int, ...]] = Counter()
    for seed in seeds(60):
        drawn = found(words(seed), [1, 1, 1, 1], 2, [3])
        assert len(set(drawn)) == 2
        assert 3 not in drawn
        seen[tuple(drawn)] += 1
    assert len(seen) == 6


@pytest.mark.parametrize("bound", [[0], [0, 1]])
def test_seats_stay_empty_where_everybody_is_bound(bound: list[int]) -> None:
    drawn = found(words(bytes(32)), [1, 1], 3, bound)
    assert drawn == ([1] if len(bound) == 1 else [NOBODY]) + [NOBODY] * 2


def test_a_draw_tries_256_slots() -> None:
    """A draw tries at most 256 slots, each given by a number from its seed. Only one account is free, and the
    257th number is the first that names this account's slot, so the account is not drawn. If the first word
    of the seed is skipped, that number becomes the 256th, and the account is drawn.
    """
    slots, bound = [1] * 400, range(1, 400)
    seed = next(seed for seed in seeds(3_000) if first(seed, 400, 257) == 256)
    assert found(words(seed), slots, 9, bound) == [NOBODY] * 9
    later = words(seed)
    next(later)
    assert found(later, slots, 9, bound) == [NOBODY] * 7 + [0, NOBODY]


def first(seed: bytes, slots: int, tries: int) -> int | None:
    """The number, counted from 0, of the first try that takes slot 0; None if none of the `tries` does."""
    stream = words(seed)
    return next((number for number in range(tries) if below(stream, slots) == 0), None)


@pytest.mark.parametrize("room", range(5))
def test_accounts_of_looks_follow_the_numbers_of_the_picks(room: int) -> None:
    """One number decides on each candidate, until `room` candidates are picked. The accounts are drawn with
    the numbers after these.
    """
    candidates = [0, 2, 3, 5]
    for seed in seeds(40):
        picked, stream = looked(seed, candidates, 5_000, room)
        again = words(seed)
        numbers: list[int] = []
        for slot in candidates:
            if len(numbers) == room:
                break
            if below(again, 10_000) < 5_000:
                numbers.append(slot)
        assert picked == numbers == picks(seed, candidates, 5_000, room)
        assert [next(stream) for _ in range(3)] == [next(again) for _ in range(3)]
