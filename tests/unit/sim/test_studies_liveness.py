"""Liveness: void tasks of the engine meet the closed forms, findings follow the table, lost draws burn stakes."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pytest

import sim
from sim.agents.population import population
from sim.agents.solvers import Lazy, Solver
from sim.agents.verifiers import Verifier
from sim.engine.simulate import Case, simulate
from sim.errors import ParameterError, SweepError
from sim.parameters import MarketParameters
from sim.results.results import Results
from sim.studies.liveness import Liveness, dear
from sim.sweeping.plan import plan
from sim.units import TOKEN


@pytest.fixture(scope="module")
def results() -> Results:
    return sim.run("liveness", runs=250, rounds=4)


def test_the_engine_meets_the_closed_forms(results: Results) -> None:
    claims = list(results.answer.claims)
    assert len(claims) == len(results.study.points({})) > 100
    assert [claim.text for claim in claims if not claim.holds] == []
    most = max(claims, key=lambda claim: claim.expected)
    assert most.error < 0.02 < most.expected


def test_everything_at_once_meets_them_too() -> None:
    params = {
        "downtime": 0.2,
        "verifiers": [2, 4],
        "audits": 3,
        "matches": 2,
        "redraws": 1,
        "gas_volatility": 0.5,
        "audit_fee": 3.5,
        "draw_missed": 0.4,
        "max_misses": 1,
    }
    claims = sim.run("liveness", runs=500, rounds=3, params=params).answer.claims
    assert len(claims) == 2
    assert all(claim.holds and 0.1 < claim.expected < 0.5 for claim in claims)


def test_findings_say_what_the_table_has(results: Results) -> None:
    seats, overlap, redrawn, spikes, missed = (finding.sentence for finding in results.answer.findings)
    assert seats.startswith("More verifiers void more tasks: where 10.0% are offline")
    assert "0.34% with 3" in seats  # 1 - 0.99^(1/3), a little more for segments that two verifiers share.
    assert "at q = 20" in overlap
    assert "0 at 0.1%" in redrawn
    assert "1 at 3.0%" in redrawn
    assert "3.5 tokens at a volatility of 0.25" in spikes
    assert "none tried with 0" in missed


def test_findings_change_with_the_data(results: Results) -> None:
    table = {name: results.rows[name] for name in results.rows}
    table["void"] = np.zeros_like(table["void"])
    answer = Liveness().answer(table)
    assert answer.findings[0].sentence.startswith("More verifiers void no more tasks")
    assert "3.4 tokens at a volatility of 1 a round" in answer.findings[3].sentence
    assert any(not claim.holds for claim in answer.claims)


def test_a_finding_needs_the_grid_that_it_is_about() -> None:
    def sentences(**params: list[float]) -> list[str]:
        found = sim.run("liveness", runs=20, rounds=1, params=params).answer.findings
        return [finding.sentence for finding in found]

    (spikes,) = sentences(audit_fee=[3.5, 9])
    assert spikes.startswith("Gas spikes silence everybody at once")
    (alone,) = sentences(audit_fee=[9])
    assert alone.startswith("Engine and theory agree")
    assert len(sentences(downtime=[0.05])) == 3


def test_where_overlap_helps_is_taken_from_the_table(results: Results) -> None:
    def overlap(most: float) -> str:
        """With nothing void from that q on."""
        void = np.where(results.rows["segments_per_verifier"] < most, 0.4, 0.0)
        return Liveness().answer({**results.rows, "void": void}).findings[1].sentence

    assert "from q = 12 on with A = 1 (40.00% void at q = 1, 0.00% at q = 20)" in overlap(12)
    assert "from q = 20 on with A = 2" in overlap(20)
    assert "at no q tried with A = 1 (40.00% void at q = 1, 40.00% at q = 20)" in overlap(21)
    assert "at no q tried with A = 1 (0.00% void" in overlap(0)


def test_a_sweep_is_as_large_as_its_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """The axes of all grids multiply to over a million."""
    fees = tuple(fee * TOKEN for fee in range(1, 21))
    assert len(plan("liveness", {"audit_fee": fees}).points) == 3 * 20
    with pytest.raises(SweepError, match=r"at most 1,000,000 points, got 28,000,000,000,000.*: downtime, "):
        plan("liveness", {"max_misses": range(10**6), "matches": range(10**6)})
    monkeypatch.setattr("sim.studies.sizes.MOST_POINTS", 100)
    with pytest.raises(SweepError, match="at most 100 points, got 1"):  # Of all grids together.
        plan("liveness", {})


def test_dear_gas_by_hand() -> None:
    """A fee of 5 leaves 1.7 beside a replay of 3.3; one attestation costs 0.07 at first."""
    parameters = Liveness().parameters().with_values({"training_cost": 60 * TOKEN, "gas_price": 1e-6})
    assert dear(parameters, 5) == 0.0
    assert dear(parameters.with_values({"gas_price": 1.8 / 70_000}), 5) == 1.0
    assert dear(parameters.with_values({"audit_fee": 3 * TOKEN, "gas_volatility": 0.5}), 5) == 1.0
    normal = np.random.default_rng(1).standard_normal((2, 400_000))
    prices = 0.07 * np.exp(np.cumsum(normal, axis=0) - np.array([[0.5], [1.0]]))
    spread = dear(parameters.with_values({"gas_volatility": 1.0}), 2)
    assert spread == pytest.approx((prices > 1.7).mean(), rel=0.1)


@pytest.mark.parametrize("solver", [Solver(), Lazy(1.0)])
def test_a_lost_draw_burns_the_stake_and_moves_no_other_token(solver: Solver) -> None:
    parameters = MarketParameters(draw_missed=1.0)
    people = population([(solver, parameters.solver_count)], [(Verifier(), parameters.verifier_count)])
    found = simulate(Case(parameters, people), runs=5, rounds=3, seed=np.random.SeedSequence(1))
    assert found["void"].tolist() == [1.0] * 5
    assert not any(found[name].any() for name in ("profit_submitter", "profit_verifier_honest"))
    assert found["burned"].tolist() == [parameters.stake] * 5


@pytest.mark.parametrize(
    "params", [{"downtime": [0.0]}, {"audit_fee": [9, 10]}, {"draw_missed": [0.999, 1.0]}]
)
def test_figures_are_drawn_where_all_or_none_are_void(params: dict[str, list[float]]) -> None:
    answer = sim.run("liveness", runs=20, rounds=1, params=params).answer
    assert all(claim.holds for claim in answer.claims)
    for finding in answer.findings:
        assert finding.figure
        finding.figure.savefig(BytesIO(), dpi=10)


def test_what_the_closed_forms_do_not_know_is_refused() -> None:
    with pytest.raises(ParameterError, match="crash_rate"):
        sim.run("liveness", runs=1, rounds=1, params={"crash_rate": 0.1})
