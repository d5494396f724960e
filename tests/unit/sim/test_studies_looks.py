"""The study of looks: the engine's earnings and lost locks agree with the closed forms, and the findings
agree with the table of results.
"""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
import pytest

import sim
from sim.errors import ParameterError
from sim.results.results import Results
from sim.studies.looks import Looks
from sim.trust_table import BUDGETS, GOAL, MAINNET, ROLLUP, SLOW_ROLLUP, TRAININGS, lines


@pytest.fixture(scope="module")
def results() -> Results:
    return sim.run("looks", runs=400, rounds=8)


def failing(**params: Any) -> list[str]:
    """The texts of the study's claims that do not hold in a small run with these parameters."""
    claims = sim.run("looks", runs=400, rounds=8, params=params).answer.claims
    assert claims
    return [claim.text for claim in claims if not claim.holds]


ONE: dict[str, Any] = {"skip_share": 0.3, "lock_share": 1, "in_seats": 1, "segments": 60}


def test_the_engine_meets_the_closed_forms(results: Results) -> None:
    assert [claim.text for claim in results.answer.claims if not claim.holds] == []


def test_the_study_asks_for_a_tenth_of_looks_and_half_a_budget_of_lock() -> None:
    terms = Looks().parameters()
    assert terms.look_chance == pytest.approx(0.1)
    assert terms.lock / terms.budget == pytest.approx(0.52, abs=0.02)


@pytest.mark.parametrize(
    "place",
    [
        "sim.mechanism.booking.take_locks",
        "sim.engine.look_ends.LookCloser._pay",
        "sim.engine.look_ends.LookCloser._answer",
    ],
)
def test_a_payment_that_is_forgotten_fails_a_claim(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    monkeypatch.setattr(place, lambda *_, **__: None)
    assert failing(**ONE)


def test_findings_say_what_the_table_has(results: Results) -> None:
    locks, lookers, sizes, price = results.answer.findings
    assert locks.sentence.startswith(
        "A rubber stamp earns less than who replays, at shares of stamps from 5% to 90%"
    )
    assert lookers.sentence.startswith("A lazy looker, which replays its seats and no looks, earns ")
    assert "no seat is skipped in equilibrium" in sizes.sentence
    assert sizes.sentence.endswith("at most 10%")
    assert price.sentence.startswith("Looks and the capital of locks cost 2.")
    for finding in (locks, lookers, price):
        assert finding.figure
        finding.figure.savefig(BytesIO(), dpi=10)


def test_findings_change_with_the_data(results: Results) -> None:
    table = {name: results.rows[name] for name in results.rows}
    table["skipping"] = np.full_like(table["skipping"], 1e9)
    answer = Looks().answer(table)
    assert answer.findings[0].sentence.startswith("A rubber stamp earns not always less")
    assert any(not claim.holds for claim in answer.claims)


def test_what_the_closed_forms_do_not_know_is_refused() -> None:
    with pytest.raises(ParameterError, match="downtime: expected 0"):
        sim.run("looks", runs=2, rounds=1, params={"downtime": 0.1})
    with pytest.raises(ParameterError, match="skip_share: expected 0 to 1"):
        sim.run("looks", runs=2, rounds=1, params={"skip_share": 2})


def test_the_goal_for_the_price_of_trust_is_met_on_a_rollup_from_a_thousand_on() -> None:
    for budget in BUDGETS[2:]:
        for days in TRAININGS:
            assert ROLLUP.price(budget, days).share() <= GOAL


def test_the_table_says_where_the_goal_is_missed() -> None:
    text = "\n".join(lines())
    assert SLOW_ROLLUP.price(1_000, 3).share() > GOAL
    assert f"it would be {SLOW_ROLLUP.price(1_000, 3).share():.1%} for" in " ".join(text.split())
    rows = [line for line in text.splitlines() if line.startswith(("| L1", "| L2"))]
    assert len(rows) == 2 * len(BUDGETS) * len(TRAININGS)
    for row in rows:
        *parts, whole = (float(cell) for cell in row.split(" | ")[3:8])
        assert sum(parts) == pytest.approx(whole, abs=0.03)
    assert MAINNET.price(10, 3).share() > 0.5
