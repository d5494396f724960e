"""Closed forms of withheld data, against enumerations and a simulation."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from sim.theory import TheoryError, cheating_advantage, minimum_stake
from sim.theory.withholding import (
    Verdict,
    Withheld,
    after_claims,
    conviction_advantage,
    conviction_loss,
    jury_verdict,
    least_retrained_stake,
    retrained_loss,
    retraining_chance,
    withheld_in_the_end,
    withholding_advantage,
)

TERMS = Withheld(
    stake=30.0, burn=30 / 16, reward=0.1, retrain_reward=3.75, restitution=1.0, price=1.0, gain=1.0
)


@pytest.mark.parametrize(("jurors", "accounts"), [(3, 3), (3, 6), (4, 7), (5, 8), (5, 4)])
@pytest.mark.parametrize(("honest", "league"), [(0, 0), (3, 1), (2, 2), (1, 3), (3, 0)])
def test_juries_are_those_of_all_draws(jurors: int, accounts: int, honest: int, league: int) -> None:
    honest = min(honest, accounts - league)
    kinds = [1] * honest + [-1] * league + [0] * (accounts - honest - league)
    drawn = list(combinations(kinds, min(jurors, accounts)))
    withheld = sum(2 * jury.count(1) > jurors for jury in drawn) / len(drawn)
    available = sum(2 * jury.count(-1) > jurors for jury in drawn) / len(drawn)
    found = jury_verdict(jurors=jurors, accounts=accounts, honest=honest, league=league)
    assert found == pytest.approx((available, withheld, 1 - withheld - available))


def test_kinds_are_no_more_than_the_accounts() -> None:
    with pytest.raises(TheoryError, match="at most 5 together, got 6"):
        jury_verdict(jurors=3, accounts=5, honest=4, league=2)


def test_a_seat_is_withheld_or_the_leagues_as_when_it_is_played() -> None:
    verdict, honest, claims = Verdict(0.1, 0.3, 0.6), 0.7, 3
    rng, runs, withheld = np.random.default_rng(1), 20_000, 0
    for _ in range(runs):
        holder = True
        while holder:
            for _claim in range(claims):
                found = rng.choice(3, p=verdict)
                if found != 2:
                    break
            if found == 1:
                withheld += 1
                break
            holder = rng.random() < honest
    expected = withheld_in_the_end(verdict, honest=honest, claims=claims)
    assert withheld / runs == pytest.approx(expected, abs=4 * 0.5 / runs**0.5)


def test_claims_go_on_while_juries_are_undecided() -> None:
    assert after_claims(Verdict(0.1, 0.4, 0.5), 2) == pytest.approx((0.15, 0.6, 0.25))
    assert withheld_in_the_end(Verdict(0.0, 1.0, 0.0), honest=0.5) == 1
    assert withheld_in_the_end(Verdict(0.0, 0.0, 1.0), honest=1.0) == 0


@pytest.mark.parametrize(("cost", "reward"), [(1.1, 4.0), (1.0, 1.5), (0.2, 5.0)])
def test_as_many_train_again_as_are_paid_for_it(cost: float, reward: float) -> None:
    chance = retraining_chance(cost=cost, reward=reward)
    rng = np.random.default_rng(2)
    others = rng.poisson(-np.log1p(-chance), 400_000)
    # One additional retrainer is the first with the same chance as each of the others.
    assert reward * (1 / (1 + others)).mean() == pytest.approx(cost, rel=0.01)
    assert (others > 0).mean() == pytest.approx(chance, abs=0.004)


def test_nobody_trains_again_at_a_loss() -> None:
    assert retraining_chance(cost=2, reward=2) == 0
    assert retraining_chance(cost=0, reward=1) == 1


def test_serving_is_the_closed_form_of_cheating() -> None:
    law = {"segments": 60, "false": 1, "segments_per_verifier": 1, "verifiers": 3, "honest": 0.7}
    caught = 1 - (1 - 0.7 / 60) ** 3
    own = TERMS._replace(shared=False, restitution=0.0)
    expected = cheating_advantage(**law, price=1.0, gain=1.0, stake=own.stake - own.reward, cost=1.0)
    assert conviction_advantage(own, caught=caught, saved=1 / 60) == pytest.approx(float(expected))


def test_withholding_is_better_than_a_conviction_by_what_the_rewards_differ() -> None:
    assert conviction_loss(TERMS) - retrained_loss(TERMS) == pytest.approx(
        TERMS.retrain_reward - TERMS.reward
    )


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("retrained", [1.0, 0.9, 0.0])
def test_at_the_least_stake_withholding_is_worth_nothing(shared: bool, retrained: float) -> None:
    terms, caught, saved = TERMS._replace(shared=shared), 0.03, 0.02
    least = least_retrained_stake(terms, caught=caught, saved=saved, retrained=retrained)
    at = terms._replace(stake=least, burn=least * terms.burn / terms.stake)
    assert withholding_advantage(
        at, caught=caught, found=1, retrained=retrained, saved=saved
    ) == pytest.approx(0, abs=1e-12)


def test_the_least_stake_is_that_of_the_terms_with_the_retrainers_reward_on_top() -> None:
    token = 10**18
    needed = (
        minimum_stake(
            segments=60,
            segments_per_verifier=1,
            verifiers=3,
            honest=Fraction(7, 10),
            price=token,
            gain=token,
            margin=token,
        )
        / token
    )
    caught = 1 - (1 - 0.7 / 60) ** 3
    least = least_retrained_stake(TERMS, caught=caught, saved=1 / 60)
    assert least == pytest.approx(needed + TERMS.restitution + TERMS.retrain_reward)
