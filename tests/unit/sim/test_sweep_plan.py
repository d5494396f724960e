"""Tests of a sweep's plan: the points of its grid, its chunks, the questions that are refused, and the rows
that playing a chunk gives.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow.parquet as pq
import pytest

from sim.engine.simulate import Columns
from sim.errors import ParameterError, SimError, StudyError, SweepError
from sim.studies import catalogue
from sim.studies.study import Answer, Point, Study, Table
from sim.sweeping.chunk import INDEX, play_chunk
from sim.sweeping.plan import plan
from sim.units import TOKEN


class Echo(Study):
    """Returns random numbers and the product of gain and rounds. At a gain of one token, it also returns one
    more measure.
    """

    name = "echo"
    question = "What was asked?"
    runs = 4
    rounds = 3

    def axes(self) -> Mapping[str, Sequence[float]]:
        return {"gain": (TOKEN, 2 * TOKEN)}

    def play(self, point: Point, *, runs: int, rounds: int, seed: np.random.SeedSequence) -> Columns:
        luck = np.random.default_rng(seed).random(runs)
        some = {"only_at_one": np.ones(runs)} if point["gain"] == TOKEN else {}
        return {"luck": luck, "tokens": np.full(runs, point["gain"] / TOKEN * rounds), **some}

    def answer(self, table: Table) -> Answer:
        return Answer([])


class Wrong(Echo):
    """Returns one number too few."""

    name = "wrong"

    def play(self, point: Point, *, runs: int, rounds: int, seed: np.random.SeedSequence) -> Columns:
        del point, rounds, seed
        return {"luck": np.zeros(runs - 1)}


class Own(Echo):
    """A study with five points, although its only axis has two values."""

    name = "own"

    def points(self, given: Mapping[str, Sequence[float]]) -> list[Point]:
        return [{"gain": gain} for gain in range(5)]


@pytest.fixture(autouse=True)
def listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "STUDIES", {"echo": Echo, "wrong": Wrong})


def test_the_grid_is_the_product_of_the_studys_axes_and_the_operators() -> None:
    asked = plan("echo", {"stake": (500 * TOKEN, 600 * TOKEN), "gain": (TOKEN, 3 * TOKEN)})
    assert [(point["gain"] // TOKEN, point["stake"] // TOKEN) for point in asked.points] == [
        (1, 500),
        (1, 600),
        (3, 500),
        (3, 600),
    ]
    assert (asked.runs, asked.rounds, asked.seed) == (4, 3, 0)


@pytest.mark.parametrize(
    ("count", "runs", "rounds"),
    [(1, 2, 1), (31, 10, 10), (1000, 2, 1), (10_000, 100, 50), (500, 10_000, 100)],
)
def test_chunks_hold_every_point_once_and_are_bounded(count: int, runs: int, rounds: int) -> None:
    axes = {"gain": tuple(range(count))}
    asked = plan("echo", axes, runs=runs, rounds=rounds)
    chunks = [asked.chunk(number) for number in range(asked.chunks)]
    assert [point for chunk in chunks for point in chunk.points] == list(asked.points)
    assert [chunk.first for chunk in chunks] == [i * asked.points_per_chunk for i in range(asked.chunks)]
    assert len(chunks) >= min(count, 32)
    assert all(len(chunk.points) == 1 or len(chunk.points) * runs <= 16_384 for chunk in chunks)


REFUSED = [
    ("nothing", {}, {}, StudyError, "expected one of echo, wrong"),
    ("none.py", {}, {}, StudyError, "expected a readable file"),
    ("echo", {"gain": ()}, {}, SweepError, "at least one value"),
    ("echo", {"stake": (-1,)}, {}, ParameterError, "stake: expected"),
    ("echo", {"verifiers": (33,)}, {}, ParameterError, "verifiers: expected 1 to 32"),
    ("echo", {"stake": range(1000), "gain": range(1001)}, {}, SweepError, "at most 1,000,000 points"),
    ("echo", {}, {"runs": 0}, SweepError, "runs: expected 2"),
    ("echo", {}, {"rounds": 10**9}, SweepError, "rounds: expected 1"),
    ("echo", {}, {"seed": 1 << 60}, SweepError, "seed: expected 0"),
]


@pytest.mark.parametrize(("study", "axes", "sizes", "error", "words"), REFUSED)
def test_what_cannot_be_asked_is_refused_before_any_play(
    study: str,
    axes: Mapping[str, Sequence[float]],
    sizes: Mapping[str, int],
    error: type[SimError],
    words: str,
) -> None:
    with pytest.raises(error) as caught:
        plan(study, axes, **sizes)
    assert words in str(caught.value)


def test_points_are_counted_however_a_study_makes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "STUDIES", {"own": Own})
    assert len(plan("own", {}).points) == 5
    monkeypatch.setattr("sim.studies.sizes.MOST_POINTS", 4)
    with pytest.raises(SweepError, match="at most 4 points, got 5"):
        plan("own", {})


def test_rows_are_tidy_and_say_their_units() -> None:
    chunk = plan("echo", {"stake": (500 * TOKEN, 600 * TOKEN)}).chunk(2)
    table = pq.read_table(io.BytesIO(play_chunk(chunk)))
    assert table.column_names == [*INDEX, "gain", "stake", "luck", "tokens"]
    assert table["point"].to_pylist() == [2] * 4
    assert table["run"].to_pylist() == [0, 1, 2, 3]
    assert table["gain"].to_pylist() == [2 * TOKEN] * 4
    assert table["tokens"].to_pylist() == [6.0] * 4
    assert table.schema.field("stake").metadata == {b"unit": b"10^-6 token"}


def test_a_measure_that_a_point_lacks_is_null_there() -> None:
    asked = plan("echo", {"stake": [n * TOKEN for n in range(500, 564)]})
    chunks = [asked.chunk(n) for n in range(asked.chunks)]
    assert {len(chunk.points) for chunk in chunks} == {4}
    mixed = plan("echo", {"gain": [n * TOKEN for n in range(1, 65)]}).chunk(0)
    table = pq.read_table(io.BytesIO(play_chunk(mixed)))
    assert table["only_at_one"].to_pylist() == [1.0] * 4 + [None] * 4


def luck(study: str, seed: int, number: int) -> list[float]:
    rows: list[float] = pq.read_table(io.BytesIO(play_chunk(plan(study, {}, seed=seed).chunk(number))))[
        "luck"
    ].to_pylist()
    return rows


def test_each_point_and_each_of_its_two_seeds_has_luck_of_its_own() -> None:
    every = luck("echo", 1, 0) + luck("echo", 1, 1) + luck("echo", 2, 0)
    assert len(set(every)) == len(every) == 12
    assert luck("echo", 1, 0) == luck("echo", 1, 0)


def test_points_whose_differences_are_asked_for_meet_the_same_luck(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Echo, "common", True)
    assert luck("echo", 1, 0) == luck("echo", 1, 1)
    assert luck("echo", 1, 0) != luck("echo", 2, 0)


def test_a_study_that_returns_too_few_numbers_is_told() -> None:
    with pytest.raises(StudyError, match="one number for each of 2 runs, got luck"):
        play_chunk(plan("wrong", {}).chunk(0))
