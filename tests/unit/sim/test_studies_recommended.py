"""Recommended terms, played small: claims hold, sentences follow the data, and worse terms are told apart."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from protocol.chain.recommendation import RULES, most_segments, recommended_terms
from sim.errors import ParameterError, SweepError
from sim.mechanism.arrays import Floats
from sim.parameters import MarketParameters
from sim.studies.margins import FORCED_MARGIN, challenges, forced_rate, margins, spans
from sim.studies.recommended import EDGES, SEGMENTS, Recommended, parameters_for
from sim.studies.study import Point, Table
from sim.theory import stake_multiple
from sim.units import TOKEN

STUDY = Recommended()


def played(points: Sequence[Point], runs: int = 400) -> Table:
    """A table as `sim run` writes it."""
    columns: dict[str, list[Floats]] = {}
    for number, point in enumerate(points):
        found = STUDY.play(point, runs=runs, rounds=1, seed=np.random.SeedSequence(7))
        rows = {name: np.full(runs, float(value)) for name, value in point.items()}
        order = {"point": np.full(runs, number), "run": np.arange(runs), "rounds": np.ones(runs)}
        for name, values in {**rows, **order, **found}.items():
            columns.setdefault(name, []).append(values)
    return {name: np.concatenate(parts) for name, parts in columns.items()}


@pytest.fixture(scope="module")
def table() -> Table:
    return played(STUDY.points({"segments": (8, most_segments())}))


def test_points_cross_edges_sizes_and_shares() -> None:
    points = STUDY.points({})
    assert len(points) == len(EDGES) * len(SEGMENTS) * 5
    assert len(STUDY.points({"gain": (1, 2)})) == 2 * len(SEGMENTS) * 5


def test_every_point_has_the_terms_that_submit_asks_for() -> None:
    parameters = parameters_for(20)
    terms = recommended_terms(20, 100 * 10**18)
    assert parameters.stake * 10**12 == terms.stake
    assert (parameters.verifiers, parameters.segments_per_verifier) == (
        RULES.verifiers,
        terms.segments_per_verifier,
    )
    assert abs(parameters.audit_fee * 10**12 - terms.audit_fee) <= 10**12


def test_cheating_loses_and_honest_work_earns(table: Table) -> None:
    answer = STUDY.answer(table)
    assert "Cheating loses at every edge" in answer.findings[0].sentence
    assert "Honest solvers and verifiers earn" in answer.findings[1].sentence
    assert "a verifier that replays earns more" in answer.findings[2].sentence
    assert all(claim.holds for claim in answer.claims)
    assert len(answer.claims) == len(EDGES) * 2 * 4


def test_the_sentence_turns_with_the_data() -> None:
    points: list[Mapping[str, float]] = [
        {**point, "stake": 60 * TOKEN, "restitution": 0, "delay_penalty": 0, "reward_cap": 0}
        for point in STUDY.points({"segments": (20,), "false_share": (0.0, 0.001)})
    ]
    answer = STUDY.answer(played(points))
    assert "does not lose" in answer.findings[0].sentence
    assert all(claim.holds for claim in answer.claims)


def test_edges_are_named_only_where_all_were_played() -> None:
    centre = STUDY.points({"segments": (20,), "stake": (1175 * TOKEN, 2000 * TOKEN)})
    sentence = STUDY.answer(played(centre, runs=100)).findings[0].sentence
    assert "Cheating loses wherever it was played" in sentence
    assert "at 'centre' with 20 segments, stake 1,175" in sentence
    off = STUDY.points({"segments": (20,), "gain": (100 * TOKEN, 150 * TOKEN)})
    sentence = STUDY.answer(played(off, runs=100)).findings[0].sentence
    assert "wherever it was played" in sentence
    assert "at 'as asked' with 20 segments, gain 150" in sentence


@pytest.mark.parametrize("honest", [0.0, 1.0])
def test_both_kinds_of_verifiers_are_there(honest: float) -> None:
    params = {"segments": (8,), "false_share": (0.0, 1.0), "honest_share": (honest,), "forced": (1.0,)}
    answer = STUDY.answer(played(STUDY.points(params), runs=50))
    assert all("nan" not in finding.sentence for finding in answer.findings)
    assert f"{0.995 if honest else 0.005:.0%} of the verifiers look" in answer.findings[2].note
    with pytest.raises(ParameterError, match="verifier_count: expected at least 2"):
        STUDY.case({**STUDY.points({})[0], "verifier_count": 1})


def test_too_many_points_are_refused_before_they_are_made() -> None:
    with pytest.raises(SweepError, match="at most 1,000,000 points, got 1,280,000"):
        STUDY.points({"false_share": range(40_000)})


def test_forced_errors_take_what_replays_cost() -> None:
    for segments in SEGMENTS:
        parameters = parameters_for(segments)
        duties = min(parameters.segments_per_verifier + 1, segments)
        replays = parameters.replay_cost * parameters.training_cost / segments * duties
        lost = (1 - (1 - forced_rate(parameters)) ** duties) * parameters.stake_unit
        assert lost == pytest.approx(min(FORCED_MARGIN * replays, parameters.stake_unit))


def test_theory_says_what_the_sentences_say() -> None:
    explosion, reach, audits, longer, reward, _ = margins()
    thin = stake_multiple(
        segments=100, segments_per_verifier=4, verifiers=RULES.verifiers, honest=0.7, gain_ratio=1.0
    )
    assert f"{thin:,.0f} prices at K = 100" in explosion.sentence
    assert "to 70% against a solver" in reach.sentence
    assert f"budgets at K = {most_segments()} for 4 tries" in audits.sentence
    for rerolls in (0, 1, 2):
        assert f"from {fees(5, rerolls):.2f} to" in audits.sentence
    assert f"at most {most_segments()} segments" in longer.sentence
    assert f"reward cap of {MarketParameters().reward_cap / TOKEN:g} tokens" in reward.sentence
    found = challenges()
    assert f"at K = {spans(found.fitting)} for a budget" in reward.sentence
    assert f"at K = {spans(found.dearer)} a challenge costs more" in reward.sentence


def fees(segments: int, rerolls: int) -> float:
    """Of all duties, in budgets."""
    terms = recommended_terms(segments, 10**18, rules=replace(RULES, rerolls=rerolls))
    return terms.verifiers * min(terms.segments_per_verifier + 1, segments) * terms.audit_fee / 10**18


def test_short_tasks_cost_more_to_challenge_than_the_cap() -> None:
    found = challenges()
    # K = 5: 20 tokens for each of 3 duties forgone, 3 replays of 60 / 5 tokens at 1.1, gas of 0.6.
    assert found.costs[5] == pytest.approx(60 + 39.6 + 0.6)
    assert 5 in found.dearer
    assert not set(found.dearer) & set(found.fitting)
    assert spans([1, 2, 3, 5, 7, 8]) == "1 to 3, 5, 7 to 8"
    assert spans([]) == "none"
