"""The study of capital: the engine's draws, sales and prices match the closed forms, and the findings say
what the table has.
"""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
import pytest

import sim
from sim.errors import ParameterError
from sim.recommendation import trust
from sim.results.results import Results
from sim.studies.capital import Capital
from sim.studies.capital_reading import prices
from sim.studies.recommended import BUDGET, parameters_for
from sim.units import TOKEN

CHAIN = 10**12
"""Chain units per engine unit."""


@pytest.fixture(scope="module")
def results() -> Results:
    return sim.run("capital", runs=200, rounds=16)


def failing(**params: Any) -> list[str]:
    """The failing claims of a small run."""
    claims = sim.run("capital", runs=200, rounds=16, params=params).answer.claims
    assert claims
    return [claim.text for claim in claims if not claim.holds]


CROWDED: dict[str, Any] = {"overlap": 8, "accounts_per_seat": 1, "solver_capital": 0, "capital_rate": 0}
SHORT: dict[str, Any] = {"overlap": 4, "solver_capital": 1, "capital_rate": 0, "accounts_per_seat": 3}
PRICED: dict[str, Any] = {"overlap": 2, "solver_capital": 0, "capital_rate": 0.1, "segments": [8, 60]}


def test_the_engine_meets_the_closed_forms(results: Results) -> None:
    claims = list(results.answer.claims)
    assert [claim.text for claim in claims if not claim.holds] == []
    kinds = (
        "redraws",
        "tasks with an empty seat",
        "sold",
        "the solver's",
        "the seats'",
        "the escrow's",
        "capital in",
    )
    for kind in kinds:
        here = [claim for claim in claims if claim.text.startswith(kind)]
        assert len(here) >= 4
        assert max(claim.expected for claim in here) > 0.04


def test_several_things_at_once_meet_them_too() -> None:
    for asked in (CROWDED, SHORT, PRICED):
        assert failing(**asked) == []
    assert failing(**{**PRICED, "stake": 5000, "audit_fee": 3, "training_time": 10**6, "verifiers": 2}) == []


@pytest.mark.parametrize(
    ("place", "asked"),
    [
        ("sim.engine.flight.Seated.add", CROWDED),
        ("sim.engine.flight.Stakes.add", SHORT),
        ("sim.engine.capital.Locks.trained", PRICED),
        ("sim.engine.capital.Locks.audited", PRICED),
    ],
)
def test_a_lock_that_is_forgotten_fails_a_claim(
    monkeypatch: pytest.MonkeyPatch, place: str, asked: dict[str, Any]
) -> None:
    monkeypatch.setattr(place, lambda *_: None)
    assert failing(**asked)


def test_the_price_of_trust_is_the_recommended_terms() -> None:
    """At the recommended rate, the study and `trust` give the same cost of capital, apart from rounding to
    the engine's coarser units.
    """
    for segments in (20, 60):
        terms = parameters_for(segments).with_values({"capital_rate": 0.1})
        price = trust(segments, BUDGET * CHAIN)
        found = prices(terms)
        assert found.trust == pytest.approx((price.stake + price.locks) / CHAIN / TOKEN, rel=1e-6)
        fees = terms.verifiers * terms.seat_fee / terms.escrow
        assert found.solver + found.seats + fees * found.escrow == pytest.approx(found.trust, rel=1e-9)


def test_findings_say_what_the_table_has(results: Results) -> None:
    seats, stakes, price = (finding.sentence for finding in results.answer.findings)
    assert "it takes 3 at 1, 13 at 4, 56 at 16, 228 at 64 tasks at a time" in seats
    assert "25% with 2 stakes for 8 tasks at a time" in stakes
    assert price.startswith("At 10% a year the capital of all locks costs")
    for finding in results.answer.findings:
        assert finding.figure
        finding.figure.savefig(BytesIO(), dpi=10)


def test_findings_change_with_the_data(results: Results) -> None:
    table = {name: results.rows[name] for name in results.rows}
    table["sold"] = np.full_like(table["sold"], 0.123)
    answer = Capital().answer(table)
    assert "12% with 2 stakes for 8 tasks at a time" in answer.findings[1].sentence
    assert any(not claim.holds for claim in answer.claims)


def test_sales_are_claimed_only_while_earnings_buy_no_stake() -> None:
    asked = {"overlap": 4, "solver_capital": 1, "capital_rate": 0, "segments": 20}
    study_of = {rounds: sim.run("capital", runs=4, rounds=rounds, params=asked).answer for rounds in (2, 16)}
    assert [len(answer.claims) for answer in study_of.values()] == [7, 0]


def test_a_grid_of_one_value_has_no_finding() -> None:
    answer = sim.run("capital", runs=20, rounds=2, params=CROWDED).answer
    (alone,) = answer.findings
    assert alone.sentence.startswith("Engine and theory agree")


def test_what_the_closed_forms_do_not_know_is_refused() -> None:
    with pytest.raises(ParameterError, match="downtime"):
        sim.run("capital", runs=2, rounds=1, params={"downtime": 0.1})
    with pytest.raises(ParameterError, match="overlap"):
        sim.run("liveness", runs=2, rounds=1, params={"overlap": 2})
