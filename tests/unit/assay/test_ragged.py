"""Rows of unequal lengths, padded or packed: none is lost or duplicated, and what does not fit is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay import data
from assay.errors import DataError

ROWS = st.lists(st.lists(st.integers(-9, 9), min_size=1, max_size=12), min_size=1, max_size=20)


@given(ROWS, st.integers(0, 5), st.integers(-9, 9))
def test_padded_rows_come_back(rows: list[list[int]], more: int, fill: int) -> None:
    length = max(map(len, rows)) + more
    found = data.padded(rows, length, fill)
    assert found["x"].shape == found["mask"].shape == (len(rows), length)
    assert [x[mask].tolist() for x, mask in zip(found["x"], found["mask"])] == rows
    assert all(mask[: len(row)].all() for mask, row in zip(found["mask"], rows))
    assert (found["x"][~found["mask"]] == fill).all()


@given(ROWS, st.integers(12, 30))
def test_packed_sequences_come_back(rows: list[list[int]], length: int) -> None:
    found = data.packed(rows, length, fill=-7)
    again = [
        (x[segment == number].tolist(), position[segment == number].tolist())
        for x, segment, position in zip(found["x"], found["segment"], found["position"])
        for number in range(1, segment.max() + 1)
    ]
    assert sorted(sequence for sequence, _ in again) == sorted(rows)
    assert all(position == list(range(len(sequence))) for sequence, position in again)
    assert (found["x"][found["segment"] == 0] == -7).all()
    assert [sequence for row in plain_first_fit(rows, length) for sequence in row] == [
        one for one, _ in again
    ]
    for segment in found["segment"]:  # each is contiguous and in order; padding comes last
        used = segment[segment > 0]
        assert (np.diff(used) >= 0).all()
        assert not segment[len(used) :].any()


def plain_first_fit(rows: list[list[int]], length: int) -> list[list[list[int]]]:
    """First fit by its definition: put every sequence into the first row that has room."""
    packed: list[list[list[int]]] = []
    for row in rows:
        fitting = (there for there in packed if sum(map(len, there)) + len(row) <= length)
        place = next(fitting, None)
        if place is None:
            packed.append([row])
        else:
            place.append(row)
    return packed


def test_the_mask_keeps_attention_in_a_sequence() -> None:
    found = {name: torch.from_numpy(x) for name, x in data.packed([[1, 2], [3, 4, 5], [6]], 7).items()}
    assert found["x"].tolist() == [[1, 2, 3, 4, 5, 6, 0]]
    assert found["segment"].tolist() == [[1, 1, 2, 2, 2, 3, 0]]
    assert found["position"].tolist() == [[0, 1, 0, 1, 2, 0, 0]]
    segment, position = found["segment"], found["position"]
    seen = (segment[:, :, None] == segment[:, None, :]) & (position[:, :, None] >= position[:, None, :])
    assert [row.nonzero()[:, 0].tolist() for row in seen[0]] == [
        [0],
        [0, 1],
        [2],
        [2, 3],
        [2, 3, 4],
        [5],
        [6],
    ]


@pytest.mark.parametrize(
    "rows",
    [
        [np.array([1, 2], np.uint8), np.array([3], np.uint8)],
        [torch.tensor([1, 2], dtype=torch.uint8), torch.tensor([3], dtype=torch.uint8)],
    ],
    ids=["numpy", "torch"],
)
def test_types_are_kept(rows: Any) -> None:
    assert data.padded(rows)["x"].dtype == np.uint8
    assert data.packed(iter(rows), 4)["x"].dtype == np.uint8


def test_rows_of_vectors_keep_their_axes() -> None:
    rows = [np.ones((2, 5), np.float32), np.ones((3, 5), np.float32)]
    assert data.padded(rows)["x"].shape == (2, 3, 5)
    assert data.packed(rows, 8)["x"].sum() == 25


@pytest.mark.parametrize(
    ("rows", "arguments", "said"),
    [
        ([[1], [1, 2, 3]], {"length": 2}, "row 1: expected at most 2 elements, as length= says, got 3"),
        ([], {"length": 2}, "at least one row, got none"),
        ([[1], []], {"length": 2}, "row 1: .* got an empty row"),
        ([[1], 2], {"length": 2}, "row 1: .* got a single value"),
        ([[1], [None]], {"length": 2}, "row 1: .* got a row of object"),
        ([[1], ["a"]], {"length": 2}, "row 1: .* got a row of <U1"),
        ([[1], [[1], [1, 2]]], {"length": 2}, "row 1: .* got ValueError"),
        ([[1], [1.5]], {"length": 2}, "row 1: expected integers .* got floats"),
        ([[1], [[1]]], {"length": 2}, r"row 1: .* got integers with \(1,\)"),
        (
            [np.array([1]), np.array([1], np.uint64)],
            {"length": 2},
            "rows: expected integers that one type holds",
        ),
        (["ab"], {"length": 2}, "row 0: .* got a single value"),
        ("ab", {"length": 2}, "got str"),
        (3, {"length": 2}, "got int"),
        ([[1]], {"length": 0}, "length: expected a whole number from 1 on, got 0"),
        ([[1]], {"length": True}, "length: .* got True"),
        ([[1]], {"length": 2, "fill": 0.5}, "fill: expected a value of int64, the rows' type, got 0.5"),
        ([np.array([1], np.uint8)], {"length": 2, "fill": -1}, "fill: expected a value of uint8"),
        ([[1]], {"length": 2, "fill": "a"}, "fill: "),
    ],
)
def test_refused(rows: Any, arguments: dict[str, Any], said: str) -> None:
    for function in (data.padded, data.packed):
        with pytest.raises(DataError, match=said):
            function(rows, **arguments)
