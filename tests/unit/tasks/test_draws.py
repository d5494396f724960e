"""Draws: seats and segments as the vectors have them, and uniform."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from protocol.tasks.draws import below, distinct, picks, segments_of, words

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "draws.json").read_text())
NAMES = ("seed", "slots", "segments", "seats", "segments_per_verifier", "slots_tried", "seat_segments")
CASES = list(zip(*(VECTORS[name] for name in NAMES), strict=True))


def numbers(text: str) -> list[int]:
    data = bytes.fromhex(text[2:])
    return [int.from_bytes(data[i : i + 4], "big") for i in range(0, len(data), 4)]


def test_there_are_vectors_to_compare() -> None:
    assert len(CASES) == 24


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0][:10])
def test_draws_are_those_of_the_vectors(case: tuple[str, int, int, int, int, str, str]) -> None:
    seed, slots, segments, seats, each, tried, chosen = case
    stream = words(bytes.fromhex(seed[2:]))
    assert [below(stream, slots) for _ in range(seats)] == numbers(tried)
    found = [segments_of(bytes.fromhex(seed[2:]), seat, segments, each) for seat in range(seats)]
    assert [segment for own in found for segment in own] == numbers(chosen)
    for own in found:
        assert len(set(own)) == len(own) == min(each, segments)
        assert 1 <= min(own) <= max(own) <= segments


PICKS = list(
    zip(
        *(VECTORS["picks"][name] for name in ("seed", "candidates", "look_chance", "room", "picked")),
        strict=True,
    )
)


def slots(bits: int) -> list[int]:
    return [slot for slot in range(32) if bits >> slot & 1]


@pytest.mark.parametrize("case", PICKS, ids=lambda case: case[0][:10])
def test_picks_are_those_of_the_vectors(case: tuple[str, int, int, int, int]) -> None:
    seed, candidates, look_chance, room, picked = case
    assert picks(bytes.fromhex(seed[2:]), slots(candidates), look_chance, room) == slots(picked)


def test_each_candidate_is_picked_with_its_chance_and_in_any_order_of_asking() -> None:
    seeds = [number.to_bytes(32) for number in range(1_000)]
    found = [picks(seed, [7, 3, 20], 1_000, 32) for seed in seeds]
    assert found == [picks(seed, [3, 7, 20], 1_000, 32) for seed in seeds]
    # 300 expected of 3,000: a standard deviation is 16.
    assert abs(sum(map(len, found)) - 300) < 5 * 16
    assert not any(picks(seed, range(32), 0, 32) for seed in seeds)


def test_every_set_of_segments_is_equally_likely() -> None:
    stream = words(bytes(32))
    seen = Counter(frozenset(distinct(stream, 4, 2)) for _ in range(6_000))
    # Six sets of 1,000 expected each: a standard deviation is 29.
    assert len(seen) == 6
    assert all(abs(times - 1_000) < 5 * 29 for times in seen.values())
