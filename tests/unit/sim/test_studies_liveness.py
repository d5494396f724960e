"""Liveness: the engine's redraws and stalled tasks agree with the closed forms, and findings follow the table."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pytest

import sim
from sim.errors import ParameterError, SweepError
from sim.results.results import Results
from sim.studies.liveness import Liveness, dear
from sim.studies.tables import mean, points_of
from sim.sweeping.plan import plan
from sim.units import TOKEN


@pytest.fixture(scope="module")
def results() -> Results:
    return sim.run("liveness", runs=250, rounds=4)


def test_the_engine_meets_the_closed_forms(results: Results) -> None:
    claims = list(results.answer.claims)
    assert len(claims) == 2 * len(results.study.points({})) > 100
    assert [claim.text for claim in claims if not claim.holds] == []
    most = max(claims, key=lambda claim: claim.expected)
    assert most.together.error < 0.1 < most.expected


def test_everything_at_once_meets_them_too() -> None:
    params = {
        "downtime": 0.4,
        "verifiers": [2, 4],
        "audits": 3,
        "redraws": 1,
        "gas_volatility": 1.0,
        "audit_fee": 1.67,
    }
    claims = sim.run("liveness", runs=500, rounds=3, params=params).answer.claims
    assert len(claims) == 4
    assert all(claim.holds and claim.expected > 0.1 for claim in claims)


def test_findings_say_what_the_table_has(results: Results) -> None:
    seats, redrawn, spikes = (finding.sentence for finding in results.answer.findings)
    assert seats.startswith("Each silent seat is drawn again: where 30% are offline")
    assert "32% with 1" in seats  # 0.01^(1/4)
    assert "0 at 0.1%" in redrawn
    points = points_of(results.study, results.rows)
    centre = {"downtime": 0.3, "verifiers": 3, "audit_fee": 5 * TOKEN, "gas_volatility": 0.0}
    enough = [
        point["redraws"]
        for point, stalled in zip(points, mean(results.rows, "stalled"))
        if {**point, **centre} == point and stalled <= 0.01
    ]
    assert f"{min(enough)} at 30.0%" in redrawn
    assert "1.7 tokens at a volatility of 0.25" in spikes


def test_findings_change_with_the_data(results: Results) -> None:
    table = {name: results.rows[name] for name in results.rows}
    table["stalled"] = np.ones_like(table["stalled"])
    answer = Liveness().answer(table)
    assert "more than 8 at 0.1%" in answer.findings[1].sentence
    assert "more than any tried at a volatility of 1 a round" in answer.findings[2].sentence
    assert any(not claim.holds for claim in answer.claims)


def test_a_finding_needs_the_grid_that_it_is_about() -> None:
    def sentences(**params: list[float]) -> list[str]:
        found = sim.run("liveness", runs=20, rounds=1, params=params).answer.findings
        return [finding.sentence for finding in found]

    (spikes,) = sentences(audit_fee=[3.5, 9])
    assert spikes.startswith("Gas spikes silence everybody at once")
    (alone,) = sentences(audit_fee=[9])
    assert alone.startswith("Engine and theory agree")
    assert len(sentences(downtime=[0.05])) == 2


def test_a_sweep_is_as_large_as_its_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """The size is the number of points of all grids together, not the product of all axes of the study."""
    fees = tuple(fee * TOKEN for fee in range(1, 21))
    assert len(plan("liveness", {"audit_fee": fees}).points) == 3 * 20
    with pytest.raises(SweepError, match=r"at most 1,000,000 points, got 5,000,000,000,000.*: "):
        plan("liveness", {"redraws": range(10**6), "verifiers": range(10**6)})
    monkeypatch.setattr("sim.studies.sizes.MOST_POINTS", 60)
    with pytest.raises(SweepError, match="at most 60 points, got 6"):  # The bound is for all grids together.
        plan("liveness", {})


def test_dear_gas_by_hand() -> None:
    """A seat has 4 segments at a fee of 2 each. Its pay, plus what it would lose by silence, is 16.1, and the
    replays cost 13.2. So an attestation is worthwhile while its gas costs less than 2.9. At the initial gas
    price, the gas costs 0.07.
    """
    values = {"training_cost": 60 * TOKEN, "gas_price": 1e-6, "gas_attest": 70_000, "audit_fee": 2 * TOKEN}
    parameters = Liveness().parameters().with_values(values)
    assert dear(parameters, 5) == 0.0
    assert dear(parameters.with_values({"gas_price": 3 / 70_000}), 5) == 1.0
    assert dear(parameters.with_values({"audit_fee": TOKEN, "gas_volatility": 0.5}), 5) == 1.0
    normal = np.random.default_rng(1).standard_normal((2, 400_000))
    prices = 0.07 * np.exp(np.cumsum(normal, axis=0) - np.array([[0.5], [1.0]]))
    spread = dear(parameters.with_values({"gas_volatility": 1.0}), 2)
    assert spread == pytest.approx((prices > 2.9).mean(), rel=0.1)


@pytest.mark.parametrize("params", [{"downtime": [0.0]}, {"audit_fee": [9, 10]}, {"downtime": [0.999, 1.0]}])
def test_figures_are_drawn_where_all_or_none_stall(params: dict[str, list[float]]) -> None:
    answer = sim.run("liveness", runs=20, rounds=1, params=params).answer
    assert all(claim.holds for claim in answer.claims)
    for finding in answer.findings:
        assert finding.figure
        finding.figure.savefig(BytesIO(), dpi=10)


def test_what_the_closed_forms_do_not_know_is_refused() -> None:
    with pytest.raises(ParameterError, match="crash_rate"):
        sim.run("liveness", runs=2, rounds=1, params={"crash_rate": 0.1})
