"""Stake and audits: a small run of the study agrees with the closed forms, and findings follow the table,
even if its numbers are altered.
"""

import re

import numpy as np
import pytest

from sim.engine.simulate import Columns
from sim.errors import ParameterError
from sim.results.results import run
from sim.studies.points import agreement, crossing, grid
from sim.studies.stake_audits import SHARES, StakeAudits
from sim.studies.study import Claim
from sim.units import TOKEN

SMALL = {"stake": "200,5000", "audits": "2,8", "segments": "50,500"}


def played(point: dict[str, float], **given: int) -> Columns:
    return StakeAudits().play(point, runs=50, rounds=2, seed=np.random.SeedSequence(3), **given)


def test_engine_and_closed_forms_agree() -> None:
    answer = run("stake_audits", runs=1024, rounds=4, params=SMALL).answer
    assert [claim.text for claim in answer.claims if not claim.holds] == []
    signs = [claim for claim in answer.claims if "contour" in claim.text]
    assert signs[0].expected == signs[0].together.measured > 0
    assert re.search("agrees with the closed form", answer.findings[0].sentence)
    grows, lowered = (
        float(re.search(pattern, answer.findings[1].sentence)[1].replace(",", ""))  # type: ignore[index]
        for pattern in (r"to ([\d,]+) tokens \(theory", r"milestones lower it to ([\d,]+)")
    )
    assert lowered < grows / 5


def test_the_map_has_only_stakes_with_every_number_of_audits() -> None:
    figure = run("stake_audits", runs=10, rounds=1).answer.findings[0].figure
    assert figure is not None
    (mesh,) = figure.axes[0].collections
    laid = np.asarray(mesh.get_array())
    axes = StakeAudits().axes()
    assert laid.shape == (len(axes["segments_per_verifier"]), len(axes["stake"]))
    assert np.isfinite(laid).all()


def test_sentence_follows_the_rows() -> None:
    results = run("stake_audits", runs=100, rounds=1, params={**SMALL, "milestones": "1", "segments": "100"})
    table = {name: np.array(results.rows[name]) for name in results.rows}
    for share in SHARES:
        table[f"advantage_{100 * share:g}"] *= -1
    answer = StakeAudits().answer(table)
    assert "does not agree" in answer.findings[0].sentence
    assert any(not claim.holds for claim in answer.claims)


def test_a_cheater_takes_the_price_that_honest_work_takes() -> None:
    point = {
        "stake": 1000 * TOKEN,
        "segments_per_verifier": 4,
        "segments": 100,
        "milestones": 1,
        "honest_share": 0.0,
    }
    columns = played(point)
    # Nobody checks: the cheater saves its whole cost of 60 tokens, and gains 100.
    assert columns["advantage_100"] == pytest.approx(160 * TOKEN)
    assert columns["advantage_0"] == pytest.approx(100.6 * TOKEN)


def test_milestones_are_tasks_of_a_part() -> None:
    point = {
        "stake": 1000 * TOKEN,
        "segments_per_verifier": 4,
        "segments": 95,
        "milestones": 10,
        "honest_share": 0.7,
    }
    parameters = StakeAudits().case(point).parameters
    assert (parameters.segments, parameters.training_cost) == (10, 6 * TOKEN)
    with pytest.raises(ParameterError, match="device_spread"):
        StakeAudits().case({**point, "device_spread": 0.5})


def test_no_stake_is_enough_where_nobody_looks() -> None:
    params = {"honest_share": "0", "stake": "500,1000", "audits": "2,3", "segments": "100,200"}
    answer = run("stake_audits", runs=40, rounds=1, params=params).answer
    assert "is none with 2" in answer.findings[0].sentence
    assert all(claim.holds for claim in answer.claims)


def test_only_grids_that_vary_what_was_asked_for_are_played() -> None:
    def sizes(**given: list[int]) -> tuple[int, int]:
        points = StakeAudits().points(given)
        return len({p["stake"] for p in points}), len({p["segments"] for p in points})

    assert sizes(stake=[100, 200, 300]) == (3, 1)
    assert sizes(segments=[100, 300]) == (1, 2)
    assert sizes(gain=[0, 1]) == sizes()


def test_agreement_counts_the_claims_that_hold() -> None:
    finding = agreement([Claim("", 1.0, 1.1, 0.1, draws=9), Claim("", 1.0, 2.0, 0.1, draws=9)])
    assert "on 1 of 2 numbers" in finding.sentence


def test_crossing_and_grid() -> None:
    zero = crossing(np.array([0.0, 1.0, 3.0]), np.array([-2.0, -1.0, 1.0]), np.array([0.1, 0.1, 0.1]))
    assert zero == pytest.approx((2.0, 0.05 * np.sqrt(2)))
    assert crossing(np.array([0.0, 1.0]), np.array([1.0, 2.0]), np.zeros(2)) is None
    across, up, laid = grid([{"a": 2, "b": 5}, {"a": 1, "b": 6}], np.array([7.0, 8.0]), "a", "b")
    assert across.tolist() == [1, 2]
    assert up.tolist() == [5, 6]
    assert laid[0, 1] == 7
    assert laid[1, 0] == 8
    assert np.isnan(laid[0, 0])
