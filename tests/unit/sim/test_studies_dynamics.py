"""Dynamics played small: where shares go by hand, theory's gains beside the engine's, sentences from the data."""

import numpy as np
import pytest

from sim.mechanism.arrays import Floats
from sim.studies import dynamics
from sim.studies.dynamics import BEST_RESPONSE, REPLICATOR, REST, Dynamics, payoffs
from sim.studies.study import Point, Table

STUDY = Dynamics()
POINT: Point = {"rule": REST, "forced": 0.0, "cheating": 0.6, "checking": 0.1, "false_share": 0.5}


def table(points: list[Point], runs: int, rounds: int) -> Table:
    columns: dict[str, list[Floats]] = {}
    for number, point in enumerate(points):
        found = STUDY.play(point, runs=runs, rounds=rounds, seed=np.random.SeedSequence(3))
        rows = {name: np.full(runs, float(value)) for name, value in point.items()}
        numbers = {"point": np.full(runs, number), "run": np.arange(runs), "rounds": np.full(runs, rounds)}
        for name, values in {**rows, **numbers, **found}.items():
            columns.setdefault(name, []).append(values)
    return {name: np.concatenate(parts) for name, parts in columns.items()}


def test_shares_move_to_what_pays() -> None:
    odds = 0.25 / 0.75 * np.e
    assert dynamics._moved(0.25, 1.0, REPLICATOR) == pytest.approx(odds / (1 + odds))
    assert dynamics._moved(0.25, 3.0, BEST_RESPONSE) == pytest.approx(0.325)
    assert dynamics._moved(0.25, -3.0, BEST_RESPONSE) == pytest.approx(0.225)
    assert dynamics._moved(0.25, 9.0, REST) == 0.25
    assert 0 < dynamics._moved(0.03, -100.0, REPLICATOR) < 0.03
    assert dynamics._moved(0.97, 100.0, REPLICATOR) < 1


@pytest.mark.parametrize(("cheating", "checking"), [(0.6, 0.1), (0.2, 0.5), (0.9, 0.02)])
def test_the_engine_pays_what_theory_says(cheating: float, checking: float) -> None:
    point = {**POINT, "cheating": cheating, "checking": checking}
    setting = STUDY.case(point).setting
    found = [
        payoffs(setting, 0.5, cheating, checking, 2_000, np.random.SeedSequence(seed)) for seed in range(8)
    ]
    for mine, theory in zip(zip(*found), STUDY.expected(point)):
        error = np.std(mine, ddof=1) / np.sqrt(len(mine))
        assert abs(np.mean(mine) - theory) < 5 * error


def test_rest_is_a_point_of_the_grid_where_nobody_gains() -> None:
    points = STUDY.points({})
    assert len(points) == 9
    assert points[-1]["rule"] == REST
    gains = STUDY.expected(points[-1])
    # A verifier's worth of checking is 3 * 0.5 % of what a conviction takes, some 20 tokens.
    assert abs(gains.solver) < 20
    assert abs(gains.verifier) < 1
    assert len(STUDY.points({"cheating": (0.3,)})) == 8


def test_sentences_follow_trajectories(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dynamics, "EPOCHS", 16)
    points = [
        {**POINT, "rule": BEST_RESPONSE, "forced": forced, "cheating": 0.1, "checking": 0.8}
        for forced in (0.0, 1.0)
    ]
    answer = STUDY.answer(table([*points, STUDY.points({})[-1]], runs=2, rounds=100))
    assert len(answer.findings) == 4
    plain, forced = answer.findings[0].sentence, answer.findings[2].sentence
    assert "attestations as they are" in plain
    assert "equilibrium is 69% and 3%" in plain
    assert "equilibrium is 0% and 100%" in forced
    assert len(answer.claims) == 2
    assert all(claim.holds for claim in answer.claims)
