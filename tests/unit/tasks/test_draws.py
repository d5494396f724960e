"""Draws are uniform. `tests/unit/vectors` compares seats, segments and picks with draws.json."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from protocol.tasks.draws import distinct, picks, segments_of, words

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "draws.json").read_text())


def test_segments_of_a_seat_are_distinct_and_in_range() -> None:
    for seed, most, each in zip(
        VECTORS["seed"], VECTORS["segments"], VECTORS["segments_per_verifier"], strict=True
    ):
        for seat in range(4):
            own = segments_of(bytes.fromhex(seed[2:]), seat, most, each)
            assert len(set(own)) == len(own) == min(each, most)
            assert 1 <= min(own) <= max(own) <= most


def test_each_candidate_is_picked_with_its_chance_and_in_any_order_of_asking() -> None:
    seeds = [number.to_bytes(32) for number in range(1_000)]
    found = [picks(seed, [7, 3, 20], 1_000, 32) for seed in seeds]
    assert found == [picks(seed, [3, 7, 20], 1_000, 32) for seed in seeds]
    # 300 of 3,000 are expected, with a standard deviation of 16.
    assert abs(sum(map(len, found)) - 300) < 5 * 16
    assert not any(picks(seed, range(32), 0, 32) for seed in seeds)


def test_every_set_of_segments_is_equally_likely() -> None:
    stream = words(bytes(32))
    seen = Counter(frozenset(distinct(stream, 4, 2)) for _ in range(6_000))
    # Six sets of 1,000 each are expected, with a standard deviation of 29.
    assert len(seen) == 6
    assert all(abs(times - 1_000) < 5 * 29 for times in seen.values())
