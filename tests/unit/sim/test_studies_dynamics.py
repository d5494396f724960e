"""Small runs of the study of dynamics: shares move as computed by hand, the engine's gains match theory, and
the sentences follow from the data.
"""

import numpy as np
import pytest

from sim.errors import ParameterError
from sim.mechanism.arrays import Floats
from sim.studies import dynamics
from sim.studies.dynamics import Dynamics, payoffs
from sim.studies.dynamics_reading import BEST_RESPONSE, REPLICATOR, REST, behaviour
from sim.studies.study import Point, Table
from sim.units import TOKEN

STUDY = Dynamics()
POINT: Point = {"rule": REST, "cheating": 0.6, "checking": 0.1, "false_share": 0.5}


def table(points: list[Point], runs: int, rounds: int) -> Table:
    columns: dict[str, list[Floats]] = {}
    for number, point in enumerate(points):
        found = STUDY.play(point, runs=runs, rounds=rounds, seed=np.random.SeedSequence(3))
        rows = {name: np.full(runs, float(value)) for name, value in point.items()}
        numbers = {"point": np.full(runs, number), "run": np.arange(runs), "rounds": np.full(runs, rounds)}
        numbers |= {"seed": np.zeros(runs), "stream": np.full(runs, number)}
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
    parameters = STUDY.case(point).parameters
    found = [
        payoffs(parameters, 0.5, cheating, checking, 2_000, np.random.SeedSequence(seed)) for seed in range(8)
    ]
    for mine, theory in zip(zip(*found), STUDY.expected(point)):
        error = np.std(mine, ddof=1) / np.sqrt(len(mine))
        assert abs(np.mean(mine) - theory) < 5 * error


def test_rest_is_a_point_of_the_grid_where_nobody_gains() -> None:
    points = STUDY.points({})
    assert len(points) == 5
    assert points[-1]["rule"] == REST
    gains = STUDY.expected(points[-1])
    # Checking is worth 3 * 0.5 % of a conviction's amount to a verifier, about 20 tokens.
    assert abs(gains.solver) < 20
    assert abs(gains.verifier) < 1
    assert len(STUDY.points({"cheating": (0.3,)})) == 4


def test_sentences_follow_trajectories(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dynamics, "EPOCHS", 16)
    point = {**POINT, "rule": BEST_RESPONSE, "cheating": 0.1, "checking": 0.8}
    answer = STUDY.answer(table([point, STUDY.points({})[-1]], runs=2, rounds=100))
    assert len(answer.findings) == 2
    rest = STUDY.equilibrium(POINT)
    assert f"equilibrium is {rest.cheating:.0%} and {rest.checking:.0%}" in answer.findings[0].sentence
    assert len(answer.claims) == 2
    assert all(claim.holds for claim in answer.claims)


def made_up(late: dict[float, float], swing: float = 0.0) -> Table:
    """Trajectories. For each stake, `late` gives the share of cheating. In epochs with an odd number, the
    share is higher by `swing`.
    """
    epochs = np.arange(dynamics.EPOCHS)
    points = [{**POINT, "rule": REPLICATOR, "checking": 0.03, "stake": stake} for stake in late]
    columns = {name: np.array([point[name] for point in points], float) for name in points[0]}
    columns |= {"point": np.arange(len(points), dtype=float), "run": np.zeros(len(points))}
    for epoch in epochs:
        columns[f"cheating_{epoch:02}"] = np.array([*late.values()]) + swing * (epoch % 2)
        columns[f"checking_{epoch:02}"] = np.full(len(points), 0.03)
    return columns


def test_trajectories_of_several_markets_are_not_taken_for_one() -> None:
    low, high = 1175 * TOKEN, 2000 * TOKEN
    rest = STUDY.equilibrium(POINT).cheating
    first, _ = STUDY.answer(made_up({low: rest, high: 0.9})).findings
    assert f"The shares go to the equilibrium: in the second half {rest:.0%} of the solvers cheat" in (
        first.sentence
    )
    assert "but for stake 1,175. It is the first of 2 markets that were played" in first.note
    assert "A cheater invents 50% of the segments" in first.note
    other = STUDY.answer(made_up({high: 0.9})).findings[0]
    assert "The shares settle elsewhere" in other.sentence
    assert "markets" not in other.note


def test_each_trajectory_is_looked_at_in_time() -> None:
    assert "keep circling" in STUDY.answer(made_up({1175 * TOKEN: 0.5}, swing=0.4)).findings[0].sentence
    rest = STUDY.equilibrium(POINT)
    still, moving = np.full((1, 2, 8), rest.cheating), np.full((1, 2, 8), rest.cheating)
    moving[0, 1, ::2] = 0.9
    late = {"cheating": moving, "checking": np.full((1, 2, 8), rest.checking)}
    assert (
        behaviour(late, rest)
        == "keep circling in 1 of 2 trajectories, go to the equilibrium in 1 of 2 trajectories"
    )
    apart = np.stack([still[:, 0], np.full((1, 8), 0.9)], axis=1)
    assert behaviour({**late, "cheating": apart}, rest) == (
        "go to the equilibrium in 1 of 2 trajectories, settle elsewhere in 1 of 2 trajectories"
    )


def test_a_single_verifier_is_of_one_kind_and_refused() -> None:
    with pytest.raises(ParameterError, match="verifier_count: expected at least 2"):
        STUDY.play({**POINT, "verifier_count": 1}, runs=1, rounds=1, seed=np.random.SeedSequence(3))
