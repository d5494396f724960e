"""Walks: each leads to a chunk, each chunk has a walk, and a walk's first bits are the chunk's turns.

`tests/unit/vectors` compares the package with walks.json, and contracts/test/juries/Walks.t.sol opens the
same chunks.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.commitments import ProofError
from protocol.commitments.digests import turns
from protocol.commitments.errors import DigestError
from protocol.commitments.walks import WALK_BITS, chunk_at, walk_to
from tests.vectors.generate_walks import FILE, document

COUNTS = st.integers(1, 5_000) | st.integers(1, 1 << 30)
WALKS = st.integers(0, (1 << WALK_BITS) - 1)
VECTORS: dict[str, list[int]] = json.loads(FILE.read_text())


def test_the_file_is_what_its_generator_writes() -> None:
    assert document() == VECTORS, "run `python -m tests.vectors.generate_walks` and review the difference"


@given(COUNTS, WALKS)
def test_every_walk_ends_at_the_chunk_that_its_turns_name(count: int, walk: int) -> None:
    index = chunk_at(count, walk)
    assert 0 <= index < count
    turned, depth = turns(count, index)
    assert walk >> (WALK_BITS - depth) == turned


@given(COUNTS, WALKS, st.data())
def test_every_chunk_has_a_walk_whatever_its_last_bits_are(
    count: int, rest: int, data: st.DataObject
) -> None:
    index = data.draw(st.integers(0, count - 1))
    walk = walk_to(count, index, rest)
    assert chunk_at(count, walk) == index
    below = WALK_BITS - turns(count, index)[1]
    assert (walk ^ rest) & ((1 << below) - 1) == 0
    assert walk_to(count, index) == walk >> below << below


@pytest.mark.parametrize(
    ("count", "walk", "index"),
    [
        (1, 0, 0),
        (1, (1 << 32) - 1, 0),
        (2, 1 << 31, 1),
        # Seven leaves: four on the left, and two and one on the right.
        (7, 0, 0),
        (7, 0b011 << 29, 3),
        (7, 0b100 << 29, 4),
        (7, 0b11 << 30, 6),
        (7, (1 << 32) - 1, 6),
    ],
)
def test_walks_go_down_from_the_most_significant_bit(count: int, walk: int, index: int) -> None:
    assert chunk_at(count, walk) == index


@pytest.mark.parametrize(("count", "walk"), [(0, 0), ((1 << 32) + 1, 0), (7, -1), (7, 1 << 32)])
def test_what_is_no_walk_is_refused(count: int, walk: int) -> None:
    with pytest.raises(ProofError, match="walk: expected 32 bits"):
        chunk_at(count, walk)


def test_there_is_no_walk_to_a_chunk_that_a_tensor_has_not() -> None:
    with pytest.raises(DigestError, match="an index below 7"):
        walk_to(7, 7)
