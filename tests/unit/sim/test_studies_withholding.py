"""Withholding: the simulated tasks agree with the closed forms, and the findings name the recommended stake.
A wrong closed form or too small a stake fails a claim.
"""

from __future__ import annotations

import pytest

import sim
from sim.errors import ParameterError
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


def test_points_without_the_recommended_share_have_findings_too() -> None:
    params = {"honest": "0.6,0.9", "free": "0.5,0.8", "retrained": "0.5,1", "accounts": "10"}
    answer = sim.run("withholding", runs=4, rounds=16, params=params).answer
    juries, retrainers = answer.findings
    assert juries.sentence.startswith(
        "With 70% honest accounts, all free, one jury of 31 finds withheld data"
    )
    assert juries.sentence.endswith("99% are out of reach")
    assert f"{withholding.withheld().stake:.2f} budgets" in retrainers.sentence


@pytest.mark.parametrize(
    ("honest", "accounts", "problem"),
    [
        ("0.9", "3", "got 3 honest accounts of 3; lower honest or raise accounts"),
        ("0.3", "1", "accounts: expected one for each of 3 seats, got 1; raise it"),
    ],
)
def test_points_that_cannot_be_played_are_refused(honest: str, accounts: str, problem: str) -> None:
    with pytest.raises(ParameterError, match=problem):
        sim.run("withholding", runs=2, rounds=1, params={"honest": honest, "accounts": accounts})


def test_a_verdict_that_half_of_a_jury_reaches_fails_a_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(withholding, "JURORS", 30)
    monkeypatch.setattr(withholding, "verdict", lambda _: Verdict(0.0, 0.5, 0.5))
    params = {"honest": "0.6", "free": "0.8", "retrained": "1"}
    answer = sim.run("withholding", runs=32, rounds=64, params=params).answer
    assert [claim for claim in answer.claims if not claim.holds]


def test_neither_serving_nor_withholding_pays_at_the_recommended_stake_where_somebody_trains_again() -> None:
    """A convicted cheater may recover the challenger's reward or the retrainer's reward, as its own
    challenger or through an accomplice. The stake is enough for either.
    """
    terms, (k, q, v) = withholding.withheld(), withholding.audit()
    caught = 1 - (1 - 0.7 * q / k) ** v
    assert terms.retrain_reward == 3 > terms.reward
    assert conviction_advantage(terms, caught=caught, saved=1 / k) <= 1e-9
    assert withholding_advantage(terms, caught=caught, found=1, retrained=1, saved=1 / k) <= 1e-9
    least = least_retrained_stake(terms, caught=caught, saved=1 / k)
    assert 0 <= terms.stake - least < 1e-3, "no more than it takes"


def test_withholding_pays_where_nobody_trains_again() -> None:
    """The amount that burns after a jury's verdict is far less than the gain."""
    terms, (k, q, v) = withholding.withheld(), withholding.audit()
    caught = 1 - (1 - 0.7 * q / k) ** v
    earned = withholding_advantage(terms, caught=caught, found=1, retrained=0, saved=1 / k)
    assert earned == pytest.approx(1 + 1 / k - caught * terms.stake / 16)
    assert earned > 0.9


def test_a_reward_that_the_stake_does_not_count_on_fails_a_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stake covers the reward R, but a cheater recovers the higher reward of a retrainer."""
    terms = withholding.withheld()
    less = terms._replace(stake=terms.stake - terms.retrain_reward + terms.reward, retrain_reward=15.0)
    monkeypatch.setattr(withholding, "withheld", lambda: less)
    params = {"honest": "0.7", "free": "1", "retrained": "1"}
    answer = sim.run("withholding", runs=64, rounds=512, params=params).answer
    assert [claim.text.partition(" at ")[0] for claim in answer.claims if not claim.holds] == [
        "gain by withholding what is found and trained again"
    ]
