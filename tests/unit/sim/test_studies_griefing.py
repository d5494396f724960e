"""Griefing: on every attack, the engine agrees with the closed forms. The findings say what the table has,
and change when it does. Each grid of points varies only its own axes.
"""

from __future__ import annotations

import math
from io import BytesIO

import numpy as np
import pytest

import sim
from sim.errors import ParameterError
from sim.results.results import Results
from sim.studies.grids import several, within
from sim.studies.griefing import Griefing
from sim.studies.griefing_reading import BONDS, FEES, PENALTIES
from sim.studies.tables import mean, points_of
from sim.units import TOKEN

PARAMETERS = Griefing().parameters()


@pytest.fixture(scope="module")
def results() -> Results:
    return sim.run("griefing", runs=200, rounds=2)


def test_the_engine_meets_the_closed_forms(results: Results) -> None:
    claims = list(results.answer.claims)
    assert [claim.text for claim in claims if not claim.holds] == []
    # Harm and loss for 7 bonds at 3 rates, 5 fees and 7 penalties at 3 rates; two break-evens at 3 rates.
    assert len(claims) == 2 * 21 + 2 * 5 + 2 * 21 + 6


def test_break_even_amounts_by_hand(results: Results) -> None:
    """The least bond and the least penalty have a griefing factor of 1: the attacker loses as much as others
    do. Each is a cost divided by 1.5.

    For the bond, the cost is what others lose, less the challenger's gas. They lose 7 days' cost of capital
    (for the price and the stake), the training of a segment, and the defence's gas. For the penalty, the cost
    is that of a delay of 30 days, less a task's gas.
    """
    found = {claim.text: claim.together.measured for claim in results.answer.claims}
    cost, gas = PARAMETERS.training_cost / TOKEN, PARAMETERS.gas_price
    held = (cost * (1 + 2 * PARAMETERS.markup / 21) + PARAMETERS.stake / TOKEN) * 0.2 * 7 / 365
    net = held + cost / PARAMETERS.segments + gas * (PARAMETERS.gas_defence - PARAMETERS.gas_dispute)
    assert found["least bond at yearly_rate 0.2"] == pytest.approx(net / 1.5, rel=1e-3)
    delay = 1000 * 0.2 * 30 / 365 - gas * PARAMETERS.gas_task
    assert found["least penalty at yearly_rate 0.2"] == pytest.approx(delay / 1.5, rel=1e-6)


def test_findings_say_what_the_table_has(results: Results) -> None:
    worst, silence, bond, penalty = results.answer.findings
    assert worst.sentence.startswith("Late solvers are the cheapest way to harm")
    points = points_of(results.study, results.rows)
    again = mean(results.rows, "redrawn")[within(results.study, points, ())[0]]
    assert silence.sentence.startswith("A silent verifier loses the fee of its seat and the draw's")
    assert f"drawn again {again:.2g} times" in silence.note
    found = {claim.text: claim.together.measured for claim in results.answer.claims}
    least = found["least bond at yearly_rate 0.2"]
    assert f"below a bond of {least:.3g} tokens where waiting costs 20% a year" in bond.sentence
    assert f"delay penalty of {found['least penalty at yearly_rate 0.2']:.3g} tokens" in penalty.sentence
    assert all(finding.figure for finding in results.answer.findings[1:])


def test_findings_change_with_the_data(results: Results) -> None:
    """The table says that late solvers do no harm. Then the finding says that the least penalty is below all
    penalties that were tried, and claims about the harm of late solvers fail.
    """
    table = {name: results.rows[name] for name in results.rows}
    table["late_harm"] = np.zeros_like(table["late_harm"])
    answer = Griefing().answer(table)
    assert "less than all of 1 to 100 tokens" in answer.findings[3].sentence
    assert any("late harm" in claim.text and not claim.holds for claim in answer.claims)


def test_other_parameters_meet_them_too() -> None:
    params = {"verifiers": 5, "segments": 300, "audits": 2, "stake": 300, "markup": 0.4, "solver_count": 3}
    params |= {"gas_price": 2e-6, "silent_share": 0.2, "yearly_rate": 0.5, "held_days": 10, "worth": 50}
    claims = sim.run("griefing", runs=200, rounds=2, params=params).answer.claims
    assert [claim.text for claim in claims if not claim.holds] == []


def test_one_point_is_enough() -> None:
    params = {"bond": 20, "audit_fee": 0.5, "delay_penalty": 0, "yearly_rate": 0.2, "gas_price": 0}
    answer = sim.run("griefing", runs=200, rounds=1, params=params).answer
    assert "endless" in answer.findings[0].sentence  # Without a penalty, being late is free.
    assert all(claim.holds for claim in answer.claims)


@pytest.mark.parametrize("params", [{"yearly_rate": [0.0]}, {"bond": [0]}, {}])
def test_figures_are_drawn_where_there_is_nothing_to_see(params: dict[str, list[float]]) -> None:
    runs = 2 if not params else 20
    for finding in sim.run("griefing", runs=runs, rounds=1, params=params).answer.findings:
        if finding.figure:
            finding.figure.savefig(BytesIO(), dpi=10)


def test_grids_vary_their_own_axes() -> None:
    study = Griefing()
    points = study.points({})
    assert len({tuple(point.values()) for point in points}) == len(points)
    assert [len(within(study, points, grid)) for grid in (BONDS, FEES, PENALTIES)] == [21, 5, 21]
    asked = several(study, {"bond": [TOKEN], "stake": [500 * TOKEN]}, (BONDS, FEES))
    assert {point["bond"] for point in asked} == {TOKEN}
    assert len(within(study, asked, FEES)) == 5


def test_impossible_values_are_refused() -> None:
    with pytest.raises(ParameterError, match="crash_rate"):
        sim.run("griefing", runs=2, rounds=1, params={"crash_rate": 0.1})
    with pytest.raises(ParameterError, match="silent_share"):
        sim.run("griefing", runs=2, rounds=1, params={"silent_share": 0.9})
    assert math.isfinite(Griefing().forms(Griefing().points({})[0])["least_bond"])
