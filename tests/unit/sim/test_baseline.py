"""The baseline: the engine meets the closed forms at every point, and a defect of the engine is found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import sim
from sim.errors import ParameterError
from sim.mechanism.arrays import Floats
from sim.studies.baseline import Baseline
from sim.studies.checks import Check
from sim.studies.study import Claim
from sim.studies.tables import by_point, mean, of_points, points_of, standard_error
from sim.sweeping.plan import plan
from sim.units import TOKEN


@pytest.fixture(scope="module")
def results() -> sim.Results:
    return sim.run("baseline", runs=100, rounds=20)


def failed(claims: Sequence[Claim | Check]) -> list[str]:
    return [claim.text for claim in claims if not claim.holds]


def test_the_engine_meets_the_closed_forms_at_every_point(results: sim.Results) -> None:
    claims = list(results.answer.claims)
    assert len(claims) == 3 * 28
    assert failed(claims) == []
    # The errors are small enough: in the middle of the grid, below 2 percent of the tasks.
    middle = next(c for c in claims if c.text == "escape at false_share 0.1, honest_share 0.5")
    assert 0 < middle.together.error < 0.02
    s = Baseline().parameters()
    false, drawn = round(0.1 * s.segments), s.segments_per_verifier
    missed = math.comb(s.segments - false, drawn) / math.comb(s.segments, drawn)
    draws = math.comb(s.verifier_count, s.verifiers)
    escape = sum(
        math.comb(s.verifier_count // 2, seats)
        * math.comb(s.verifier_count // 2, s.verifiers - seats)
        / draws
        * missed**seats
        for seats in range(s.verifiers + 1)
    )
    assert middle.expected == pytest.approx(escape, rel=1e-12)


def test_other_parameters_meet_them_too() -> None:
    params = {
        "segments": [7, 300],
        "verifiers": [1, 5],
        "audits": [1, 6],
        "stake": 100,
        "restitution": 5,
        "reward": 3,
        "game_cost": 1,
        "retrain_reward": 0,
        "delay_penalty": 1,
        "markup": 0.5,
        "gas_price": 2e-6,
        "gas_volatility": 0.1,
        "solver_count": 2,
        "false_share": 0.3,
        "honest_share": 0.6,
    }
    claims = sim.run("baseline", runs=200, rounds=10, params=params).answer.claims
    assert len(claims) == 3 * 8
    assert failed(list(claims)) == []


def test_nothing_at_stake_burns_nothing() -> None:
    nothing = dict.fromkeys(
        (
            "stake",
            "delay_penalty",
            "restitution",
            "reward",
            "retrain_reward",
            "game_cost",
            "audit_fee",
        ),
        0,
    )
    params = {**nothing, "false_share": 0.5, "honest_share": [0.5, 0.7]}
    answer = sim.run("baseline", runs=20, rounds=5, params=params).answer
    assert failed(list(answer.claims)) == []
    sentence = answer.findings[2].sentence
    assert "agree on the burned stake: 2 of 2 points within 4 standard errors of both seeds" in sentence
    assert sentence.endswith("the farthest 0.0 away")


DEFECTS = [
    ("escaped", "escape", lambda column: column + 0.08),
    ("profit_solver_lazy", "cheater's profit", lambda column: column * 1.3),
    ("burned", "burned stake", lambda column: column * 0.8),
]


@pytest.mark.parametrize(("column", "text", "spoil"), DEFECTS, ids=[text for _, text, _ in DEFECTS])
def test_a_wrong_engine_is_found(results: sim.Results, column: str, text: str, spoil: object) -> None:
    assert callable(spoil)
    spoiled: dict[str, Floats] = {**results.rows, column: spoil(results.rows[column])}
    found = Baseline().answer(spoiled)
    wrong = failed(list(found.claims))
    assert len(wrong) > 5
    assert all(claim.startswith(f"{text} at ") for claim in wrong)
    assert f"do not agree on the {text}" in " ".join(finding.sentence for finding in found.findings)


def test_one_event_where_none_is_expected_is_no_contradiction() -> None:
    rare = Claim("rare", 1e-9, 1 / 2000, 1 / 2000, draws=2000)
    assert rare.holds
    assert not replace(rare, measured=1 / 200).holds


REFUSED = [
    ({"device_spread": (0.1,)}, "device_spread: expected 0"),
    ({"downtime": (0.1,)}, "downtime: expected 0"),
    ({"arrival_rate": (0.5,)}, "arrival_rate: expected 1"),
    ({"beacon_stops": (0.5,)}, "beacon_stops: expected 0"),
    ({"training_cost": (100 * TOKEN,)}, "budget: expected at least"),
    ({"honest_share": (1.5,)}, "honest_share: expected 0 to 1"),
    ({"false_share": (-0.5,)}, "false_share: expected 0 to 1"),
]


@pytest.mark.parametrize(("axes", "words"), REFUSED)
def test_what_the_closed_forms_do_not_reach_is_refused(
    axes: dict[str, tuple[float, ...]], words: str
) -> None:
    with pytest.raises(ParameterError, match=words):
        plan("baseline", axes)


def test_tables_are_read_by_point() -> None:
    table = {
        "point": np.repeat([0.0, 1.0], 3),
        "run": np.tile([0.0, 1.0, 2.0], 2),
        "stake": np.repeat([1e9, 2e9], 3),
        "false_share": np.repeat([0.5, 1.0], 3),
        "escaped": np.array([0.0, 1.0, 2.0, 5.0, 5.0, 5.0]),
    }
    assert by_point(table, "escaped").shape == (2, 3)
    assert list(of_points(table, "stake")) == [1e9, 2e9]
    assert list(mean(table, "escaped")) == [1.0, 5.0]
    np.testing.assert_allclose(standard_error(table, "escaped"), [1 / np.sqrt(3), 0.0])
    assert points_of(Baseline(), table) == [
        {"stake": 10**9, "false_share": 0.5},
        {"stake": 2 * 10**9, "false_share": 1.0},
    ]
    one = {name: column[::3] for name, column in table.items()}
    assert list(standard_error(one, "escaped")) == [np.inf, np.inf]
