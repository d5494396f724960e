"""A small run of the study of the recommended terms: its claims hold, its sentences follow the data, and it
finds terms that are worse.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from protocol.chain.recommendation import RULES
from sim.errors import ParameterError, SweepError
from sim.mechanism.arrays import Floats
from sim.parameters import MarketParameters
from sim.recommendation import recommended, trust
from sim.studies.margins import challenges, margins
from sim.studies.recommended import EDGES, SEGMENTS, Recommended, parameters_for
from sim.studies.study import Point, Table
from sim.theory import stake_multiple
from sim.units import TOKEN

STUDY = Recommended()
OWED = ("restitution", "reward", "retrain_reward", "game_cost", "audit_fee")
"""The parameters that set the amounts owed after a conviction."""


def played(points: Sequence[Point], runs: int = 400) -> Table:
    """Play the points, and return a table in the form that `sim run` writes."""
    columns: dict[str, list[Floats]] = {}
    for number, point in enumerate(points):
        found = STUDY.play(point, runs=runs, rounds=1, seed=np.random.SeedSequence(7, spawn_key=(number,)))
        rows = {name: np.full(runs, float(value)) for name, value in point.items()}
        order = {"point": np.full(runs, number), "run": np.arange(runs), "rounds": np.ones(runs)}
        order |= {"seed": np.zeros(runs), "stream": np.full(runs, number)}
        for name, values in {**rows, **order, **found}.items():
            columns.setdefault(name, []).append(values)
    return {name: np.concatenate(parts) for name, parts in columns.items()}


@pytest.fixture(scope="module")
def table() -> Table:
    return played(STUDY.points({"segments": (8, SEGMENTS[-1])}))


def test_points_cross_edges_sizes_and_shares() -> None:
    points = STUDY.points({})
    assert len(points) == len(EDGES) * len(SEGMENTS) * 5
    assert len(STUDY.points({"gain": (1, 2)})) == 2 * len(SEGMENTS) * 5


def test_every_point_has_the_terms_that_submit_asks_for() -> None:
    parameters = parameters_for(20)
    terms = recommended(20, 100 * 10**18)
    assert parameters.stake == terms.stake // 10**12
    assert (parameters.verifiers, parameters.segments_per_verifier) == (
        RULES.verifiers,
        terms.segments_per_verifier,
    )
    assert abs(parameters.audit_fee * 10**12 - terms.audit_fee) <= 10**12


def test_edges_are_played_and_honest_work_earns(table: Table) -> None:
    answer = STUDY.answer(table)
    assert "at every edge" in answer.findings[0].sentence
    assert "Honest solvers and verifiers earn" in answer.findings[1].sentence
    assert all(claim.holds for claim in answer.claims)
    assert len(answer.claims) == len(EDGES) * 2 * 4


def test_the_sentence_turns_with_the_data() -> None:
    points: list[Mapping[str, float]] = [
        {**point, **dict.fromkeys(OWED, 0), "stake": 60 * TOKEN, "delay_penalty": 0}
        for point in STUDY.points({"segments": (20,), "false_share": (0.0, 0.001)})
    ]
    answer = STUDY.answer(played(points))
    assert "does not lose" in answer.findings[0].sentence
    assert all(claim.holds for claim in answer.claims)


def test_edges_are_named_only_where_all_were_played() -> None:
    centre = STUDY.points({"segments": (20,), "stake": (3000 * TOKEN, 5000 * TOKEN)})
    sentence = STUDY.answer(played(centre, runs=2000)).findings[0].sentence
    assert "Cheating loses wherever it was played" in sentence
    assert "at 'centre' with 20 segments, stake 3,000" in sentence
    off = STUDY.points({"segments": (20,), "gain": (100 * TOKEN, 150 * TOKEN)})
    sentence = STUDY.answer(played(off, runs=100)).findings[0].sentence
    assert "wherever it was played" in sentence
    assert "at 'as asked' with 20 segments, gain 150" in sentence


@pytest.mark.parametrize("honest", [0.0, 1.0])
def test_both_kinds_of_verifiers_are_there(honest: float) -> None:
    params = {"segments": (8,), "false_share": (0.0, 1.0), "honest_share": (honest,)}
    answer = STUDY.answer(played(STUDY.points(params), runs=50))
    assert all("nan" not in finding.sentence for finding in answer.findings)
    with pytest.raises(ParameterError, match="verifier_count: expected at least 2"):
        STUDY.case({**STUDY.points({})[0], "verifier_count": 1})


def test_too_many_points_are_refused_before_they_are_made() -> None:
    with pytest.raises(SweepError, match="at most 1,000,000 points, got 1,120,000"):
        STUDY.points({"false_share": range(40_000)})


def test_theory_says_what_the_sentences_say() -> None:
    explosion, reach, audits, reward, _ = margins()
    thin = stake_multiple(
        segments=100, segments_per_verifier=4, verifiers=RULES.verifiers, honest=0.7, gain_ratio=1.0
    )
    assert f"{thin:,.1f} prices at K = 100" in explosion.sentence
    assert "down to 70%" in reach.sentence
    budget = 100 * 10**18
    shares = trust(60, budget).shares(budget)
    assert audits.sentence.startswith("For a budget of 100 tokens, without looks: ")
    assert f"{float(shares['total']):.1%} at K = 60" in audits.sentence
    assert f"{float(shares['stake']):.1%} the stake's capital" in audits.sentence
    terms = recommended(60, budget)
    kept = (terms.stake - terms.reward - terms.restitution) / budget
    assert f"{60 / (0.7 * kept):.1f} audits at K = 60" in audits.note
    found = challenges()
    assert f"are {found.least:.1f} to {found.most:.1f} times that" in reward.sentence
    assert found.least > 1


def test_a_challenge_costs_gas_and_replays() -> None:
    found, terms = challenges(), recommended(5, 100 * 10**18)
    gas = MarketParameters().gas_dispute * MarketParameters().gas_price
    # With K = 5, each segment of the seat takes a replay of 13.2 tokens.
    assert found.costs[5] == pytest.approx(terms.segments_per_verifier * 13.2 + gas)
    paid = terms.reward + terms.game_cost + terms.audit_fee * terms.segments_per_verifier
    assert found.pays[5] == pytest.approx(paid / 10**18)
