"""Draws computed again from their seed: as the contract's vectors, and the slots' order as encoding.md has it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sim.replay.drawing import holders, redraw

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "draws.json").read_text())
CASES = [
    case
    for case in zip(
        *(
            VECTORS[name]
            for name in ("seed", "slots", "segments", "draws", "segments_per_verifier", "numbers")
        )
    )
    if case[1] < 5_000
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0][:10])
def test_draws_are_those_of_the_vectors(case: tuple[str, int, int, int, int, str]) -> None:
    seed, slots, segments, draws, each, numbers = case
    drawn = redraw(bytes.fromhex(seed[2:]), [1] * slots, draws, segments, each, matches=1)
    found = []
    for seat in range(draws):
        found += [int(drawn.verifiers[seat, 0]), *drawn.segments[1:, seat, 0].tolist()]
    words = bytes.fromhex(numbers[2:])
    assert found == [int.from_bytes(words[i : i + 4], "big") for i in range(0, len(words), 4)]


def test_there_are_vectors_to_compare() -> None:
    assert len(CASES) >= 10


def test_slots_are_those_of_large_seats_first() -> None:
    # 5 = 4 + 1, 6 = 4 + 2: two seats of 4, one of 2, two of 1.
    assert holders([5, 1, 6]) == [0] * 4 + [2] * 4 + [2] * 2 + [0, 1]
    assert holders([255]) == [0] * 255


def test_fewer_verifiers_than_matches_draw_more_for_the_last_segment() -> None:
    seen = set()
    for number in range(40):
        drawn = redraw(number.to_bytes(32, "big"), [1, 1, 1], 1, 4, 2, matches=2)
        assert len(set(drawn.verifiers[:, 0].tolist())) == len(drawn.verifiers) == 2
        assert drawn.due[:, 1, 0].tolist() == [True, False, False]
        assert drawn.segments[0].tolist() == [[4], [4]]
        seen.add(tuple(drawn.verifiers[:, 0].tolist()))
    assert len(seen) == 6


def test_too_few_verifiers_are_not_drawn_for_ever() -> None:
    assert len(redraw(bytes(32), [1], 1, 4, 2, matches=2).verifiers) == 1
