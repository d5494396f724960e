"""Claims with two seeds: each seed can break a claim, draws count once, and wide tolerances are reported."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

import sim
from sim.engine.simulate import Columns
from sim.engine.streams import streams
from sim.errors import StudyError
from sim.mechanism.arrays import Floats
from sim.mechanism.draw import Pool
from sim.studies.baseline import Baseline
from sim.studies.catalogue import STUDIES
from sim.studies.checks import Check, Verdict, checked
from sim.studies.study import CHANCE, Answer, Claim, Finding, Point, Study, Table
from sim.studies.tables import OfSeed, draws, mean

PARAMS = {"false_share": [0.1, 0.5], "honest_share": 0.5}


@pytest.fixture(scope="module")
def results() -> sim.Results:
    return sim.run("baseline", runs=200, rounds=10, params=PARAMS)


def test_both_seeds_stand_beside_what_theory_expects(results: sim.Results) -> None:
    claims = results.answer.claims
    assert len(claims) == 6
    assert any(claim.measured[0] != claim.measured[1] for claim in claims)
    for claim in claims:
        assert claim.holds
        assert len(claim.measured) == 2
        assert claim.draws == 100 * 10
        assert claim.together.draws == 200 * 10
        # One seed has half of the draws, so its tolerance is about sqrt(2) times that of both.
        assert claim.tolerance == pytest.approx(claim.together.tolerance * np.sqrt(2), rel=0.2)
        assert f"± {claim.tolerance:.2g} expected" in claim.words
        assert claim.words.endswith("4 standard errors of 1,000 distinct draws")


@pytest.mark.parametrize("seed", [0, 1])
def test_a_form_that_is_off_with_one_seed_fails(results: sim.Results, seed: int) -> None:
    """With one seed, the value is off by 5 standard errors of that seed, but within the tolerance of both
    seeds together.
    """
    table = dict(results.rows)
    claim = next(claim for claim in results.answer.claims if claim.text.startswith("escape at"))
    off = 5 * claim.seeds[seed].error + claim.expected - claim.measured[seed]
    first = (table["seed"] == seed) & (table["point"] == 0)
    table["escaped"] = np.where(first, table["escaped"] + off, table["escaped"])
    found = next(one for one in checked(Baseline(), table).claims if one.text == claim.text)
    assert [one.holds for one in found.seeds] == [number != seed for number in range(2)]
    assert found.together.holds
    assert not found.holds


def test_a_number_that_one_seed_lacks_does_not_hold() -> None:
    claim = Claim("zero", 1.0, 1.0, 0.01, draws=9)
    assert Check(claim, [claim, claim]).holds
    assert not Check(claim, [claim]).holds
    assert "nothing played" in Check(claim, []).words


ONE_SEED = """
import numpy as np
from sim.studies.study import Answer, Claim, Finding, Study
from sim.studies.tables import draws, mean
class Off(Study):
    name = 'off'
    question = 'Is one seed enough?'
    runs, rounds = 8, 1
    def play(self, point, *, runs, rounds, seed):
        return {'value': np.full(runs, 1.0 + (seed.spawn_key[0] == NUMBER))}
    def answer(self, table):
        measured = float(mean(table, 'value')[0])
        return Answer([Finding('No.')], [Claim('value', 1.0, measured, 0.2, draws=draws(table, 0))])
"""


@pytest.mark.parametrize(("number", "code"), [(0, 2), (1, 2), (9, 0)])
def test_strict_ends_with_2_for_either_seed(tmp_path: Path, number: int, code: int) -> None:
    """The value of seed `number` is off by 1. With both seeds together it is off by 0.5, which is within 4
    standard errors. If `number` is 9, neither seed is off.
    """
    (tmp_path / "off.py").write_text(ONE_SEED.replace("NUMBER", str(number)))
    done = subprocess.run(
        [sys.executable, "-c", "import sim.cli as cli; cli.main()", "run", "off.py", "--strict"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == code, done.stderr
    words = "value: 1 ± 0.8 expected (80.0%), 2 and 1 played, 4 standard errors of 4 distinct draws"
    assert (words in done.stdout) == (number == 0)


class Tiny(Study):
    """Draws two seats among three verifiers in each round. Returns the random number and the account of the
    first seat.
    """

    name = "tiny"
    question = "How many draws are there?"
    runs = 6
    rounds = 3

    def axes(self) -> Mapping[str, Sequence[float]]:
        return {"gain": (1, 2, 3)}

    def play(self, point: Point, *, runs: int, rounds: int, seed: np.random.SeedSequence) -> Columns:
        del point
        random = streams(seed, runs)
        numbers = [random.draws.uniform(2) for _ in range(rounds)]
        nobody = np.empty((0, runs), dtype=np.int64)
        seats = [Pool(np.ones(3, dtype=np.int64)).seats(number, nobody)[0] for number in numbers]
        return {
            **{f"number_{n}": number[0] for n, number in enumerate(numbers)},
            **{f"seat_{n}": seat.astype(np.float64) for n, seat in enumerate(seats)},
        }

    def answer(self, table: Table) -> Answer:
        del table
        return Answer([Finding("Some.")])


class Shared(Tiny):
    """A study whose points all have the same random numbers."""

    common = True


class Claiming(Shared):
    """Makes a claim, which is refused for a study with common random numbers."""

    def answer(self, table: Table) -> Answer:
        return Answer([Finding("One.")], [Claim("one", 1.0, 1.0, 0.1, draws=draws(table, 0))])


def rows(study: type[Tiny], monkeypatch: pytest.MonkeyPatch) -> Mapping[str, Floats]:
    monkeypatch.setitem(STUDIES, "tiny", study)
    return sim.run("tiny").rows


@pytest.mark.parametrize(("study", "expected"), [(Tiny, 3 * 6 * 3), (Shared, 6 * 3)])
def test_draws_are_as_many_as_random_numbers_that_differ(
    study: type[Tiny], expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Draws with different random numbers are counted separately, even if their seats are equal, which is
    frequent with three accounts.
    """
    table = rows(study, monkeypatch)
    numbers = np.concatenate([table[f"number_{n}"] for n in range(3)])
    assert draws(table, 0, 1, 2) == len(set(numbers)) == expected
    assert draws(table, 1) == draws(table, 1, 1) == 6 * 3
    assert draws(table, 0, 1, 2, each=1) == expected // 3
    assert set(table["seat_0"]) <= {0.0, 1.0, 2.0}


def test_claims_about_points_with_the_same_numbers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STUDIES, "tiny", Claiming)
    with pytest.raises(StudyError, match="expected no claims of points with common random numbers, got 1"):
        _ = sim.run("tiny").answer


@given(
    some.lists(
        some.tuples(some.integers(0, 1), some.integers(0, 3), some.integers(0, 4)), min_size=12, max_size=12
    ),
    some.integers(1, 5),
)
def test_draws_of_any_rows_are_counted_once(keys: list[tuple[int, int, int]], rounds: int) -> None:
    """There are four points of three runs each. A row's seed, stream and run determine its random numbers."""
    seed, stream, _ = np.array(keys, dtype=np.float64).T
    run = np.tile(np.arange(3.0), 4)
    table = {"seed": seed, "stream": stream, "run": run, "rounds": np.full(12, float(rounds))}
    met = list(zip(seed, stream, run))
    assert draws(table, 0, 1, 2, 3) == len(set(met)) * rounds
    assert draws(table, 2) == len(set(met[6:9])) * rounds


def test_the_rows_of_a_seed_are_a_table() -> None:
    table = {
        "point": np.repeat([0.0, 1.0], 3),
        "run": np.tile([0.0, 1.0, 2.0], 2),
        "seed": np.tile([0.0, 1.0, 1.0], 2),
    }
    table |= {"luck": np.arange(6.0)}
    second = OfSeed(table, 1)
    assert list(second) == list(table)
    assert second["run"].tolist() == [0, 1, 0, 1]
    assert mean(second, "luck").tolist() == [1.5, 4.5]
    assert mean(OfSeed(table, 0), "luck").tolist() == [0, 3]


@pytest.mark.parametrize(
    ("expected", "error", "bound", "weak"),
    [
        (1.0, 0.024, 0.0, False),
        (1.0, 0.026, 0.0, True),
        (-1.0, 0.026, 0.0, True),
        (0.001, 0.004, CHANCE, False),
        (0.001, 0.006, CHANCE, True),
        (0.0, 0.1, 0.0, True),
        (0.0, 0.0, 0.0, False),
    ],
)
def test_a_tolerance_above_a_tenth_and_the_bound_is_weak(
    expected: float, error: float, bound: float, weak: bool
) -> None:
    claim = Claim("", expected, expected, error, draws=9, bound=bound)
    assert Check(claim, [claim, claim]).weak == weak


def test_claims_are_ordered_by_what_they_say_least() -> None:
    def check(text: str, expected: float, error: float, off: float = 0.0) -> Check:
        claim = Claim(text, expected, expected + off, error, draws=9)
        return Check(claim, [claim, claim])

    found = [
        check("narrow", 1, 0.001),
        check("wide", 1, 0.1),
        check("off", 1, 0.001, 1),
        check("wider", 0, 0.1),
    ]
    assert [one.text for one in Verdict([], found).ordered] == ["off", "wider", "wide", "narrow"]
    assert (Verdict([], found).held, Verdict([], found).weak) == (3, 2)
