"""Withholding: what is played meets the closed forms, and findings follow the terms."""

from __future__ import annotations

import pytest

import sim
from sim.studies import withholding
from sim.theory import Verdict, conviction_advantage, least_retrained_stake, withholding_advantage


def test_what_is_played_meets_the_closed_forms() -> None:
    answer = sim.run("withholding", runs=32, rounds=64).answer
    assert [claim.text for claim in answer.claims if not claim.holds] == []
    juries, retrainers = answer.findings
    assert juries.sentence.startswith(
        "With 70% honest accounts, all free, one jury of 31 finds withheld data"
    )
    assert f"{withholding.withheld().stake:.2f} budgets" in retrainers.sentence


def test_a_verdict_that_half_of_a_jury_reaches_fails_a_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(withholding, "JURORS", 30)
    monkeypatch.setattr(withholding, "verdict", lambda _: Verdict(0.0, 0.5, 0.5))
    params = {"honest": "0.6", "free": "0.8", "retrained": "1"}
    answer = sim.run("withholding", runs=32, rounds=64, params=params).answer
    assert [claim for claim in answer.claims if not claim.holds]


def test_serving_does_not_pay_at_the_recommended_stake_and_withholding_does() -> None:
    """What the page says: the stake counts on R, not on the retrainers' reward, which a cheater gives itself."""
    terms, (k, q, v) = withholding.withheld(), withholding.audit()
    caught = 1 - (1 - 0.7 * q / k) ** v
    assert conviction_advantage(terms, caught=caught, saved=1 / k) <= 1e-9
    assert withholding_advantage(terms, caught=caught, found=1, retrained=1, saved=1 / k) == pytest.approx(
        caught * (terms.retrain_reward - terms.reward), abs=1e-6
    )
    least = least_retrained_stake(terms, caught=caught, saved=1 / k)
    assert least - terms.stake == pytest.approx(terms.retrain_reward - terms.reward, abs=1e-6)
