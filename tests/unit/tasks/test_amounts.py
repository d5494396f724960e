"""Derived amounts deter, fit every bound of the contracts, and make trust in a long task cheap enough."""

import json
from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from protocol.chain.duties import FILE, GAS
from protocol.chain.parameters import RECOMMENDED, TOKEN, Parameters
from protocol.chain.recommendation import RULES, gas_units
from protocol.chain.terms_bounds import bounds, require_within_bounds
from protocol.node.words import tokens
from protocol.tasks.amounts import (
    OPTIONAL,
    YEAR,
    Amounts,
    NoRecommendation,
    Setting,
    capital_cost,
    derive,
    deterrent,
    task_capital,
    trust_price,
)
from protocol.tasks.economics import ONE, Audit, escape_chance, minimum_stake
from protocol.tasks.task import LINE, MAX_LOCK, TermsError
from tests.unit.tasks.priced import DAY, on_l2, settings, terms

VECTORS = Path(__file__).parents[2] / "vectors"


@given(settings())
def test_derived_amounts_are_within_every_bound(case: tuple[Setting, Parameters]) -> None:
    made, parameters = case
    parameters = replace(parameters, stake_unit=10**9 * TOKEN)
    amounts = derive(made, RULES)
    posted = terms(made, amounts)
    assert posted.owed <= posted.stake - -(-posted.stake // 4)
    for bound in bounds(posted, parameters):
        if bound.field in OPTIONAL:
            assert bound.least <= getattr(posted, bound.field) <= bound.most, bound.field
    assert amounts.bond == next(b.least for b in bounds(posted, parameters) if b.field == "bond")
    assert amounts.game_cost >= GAS.game * made.gas_price
    assert amounts.audit_fee * made.segments >= RULES.replay * made.budget
    assert amounts.seat_fee >= GAS.seat * made.gas_price


@given(settings(), st.integers(1, 5_000), st.integers(0, 10**6))
def test_no_number_of_false_segments_pays_whatever_the_cheater_gets_back(
    case: tuple[Setting, Parameters], false: int, millionths: int
) -> None:
    """Cheating does not pay even if the cheater gets back three amounts: the restitution, the price, and the
    greater of the two rewards. The price may be any amount up to the budget.
    """
    made, _ = case
    amounts = derive(made, RULES)
    false = 1 + false % made.segments
    price = made.budget * millionths // 10**6
    audit = Audit(
        made.segments, amounts.segments_per_verifier, amounts.verifiers, int(RULES.honest_share * ONE)
    )
    caught = 1 - Fraction(escape_chance(audit, false), ONE)
    lost = amounts.stake - max(amounts.reward, amounts.retrain_reward) - amounts.restitution
    assert caught * lost >= Fraction(false * price, made.segments) + RULES.gain * made.budget
    assert amounts.stake >= deterrent(made, RULES, amounts)


@given(settings(), st.sampled_from([name for name in OPTIONAL if name != "stake"]), st.integers(0, 10**24))
def test_what_is_given_stays_and_the_stake_still_deters(
    case: tuple[Setting, Parameters], name: str, value: int
) -> None:
    made, _ = case
    if name == "verifiers":
        value = 1 + value % 32
    elif name == "segments_per_verifier":
        value = 1 + value % min(64, made.segments)
    elif name == "restitution":
        value = min(value, made.budget)
    elif name == "bond":
        value += derive(made, RULES).bond * 2
    elif name == "look_chance":
        value %= 10_001
    try:
        amounts = derive(made, RULES, {name: value})
    except NoRecommendation:
        assume(False)
    assert getattr(amounts, name) == value
    assert amounts.stake >= deterrent(made, RULES, amounts)
    if name == "seat_lock" and value < amounts.seat_fee:
        with pytest.raises(TermsError, match="seat_lock"):
            terms(made, amounts)
    else:
        terms(made, amounts)


@given(settings(), st.integers(1, 9))
def test_amounts_grow_with_the_budget_and_the_price_of_gas(
    case: tuple[Setting, Parameters], factor: int
) -> None:
    made, _ = case
    drawn = {"segments_per_verifier": 1}
    less = derive(made, RULES, drawn)
    for more in (
        replace(made, budget=made.budget * factor),
        replace(made, gas_price=made.gas_price * factor),
    ):
        try:
            found = derive(more, RULES, drawn)
        except NoRecommendation as refused:
            # The stake has grown beyond what a lock holds.
            grown = f"a stake of at most {tokens(MAX_LOCK)}" in str(refused)
        else:
            names = ("audit_fee", "game_cost", "stake")
            grown = all(getattr(found, name) >= getattr(less, name) for name in names)
        assert grown


def test_a_stake_that_is_given_bounds_what_is_paid_from_it() -> None:
    made = on_l2(segments=8, budget=100 * TOKEN)
    drawn = {"verifiers": 1, "segments_per_verifier": 2}
    own = {"stake": 240 * TOKEN, "audit_fee": 2 * TOKEN, "restitution": 80 * TOKEN, **drawn}
    amounts = derive(made, RULES, own)
    # Of 240 tokens, 60 burn, 80 are restitution, 27.5 are a game's cost and 4 a seat's fee.
    assert amounts.reward == amounts.retrain_reward == 30 * TOKEN == amounts.stake // 8
    assert terms(made, amounts).owed < 180 * TOKEN
    assert deterrent(made, RULES, amounts) > amounts.stake
    own["restitution"] = 100 * TOKEN
    amounts = derive(made, RULES, {**own, "verifiers": 2, "game_cost": 22 * TOKEN})
    assert terms(made, amounts).owed == 180 * TOKEN < terms(made, amounts).stake
    with pytest.raises(NoRecommendation, match=r"expected at least 2.* choose a lower game_cost"):
        derive(made, RULES, {**own, "stake": 200 * TOKEN})


def test_trust_costs_less_than_an_eighth_of_the_price_on_a_rollup() -> None:
    """The expected figures, computed by hand in units of the budget. The price p and the gain G are both one
    budget. Three seats replay n = 3 of the K = 60 segments, and h = 0.7 is the honest share. Let S be the
    stake and R the reward. The condition n / K >= (G + p / K) / (h (S - R + p)) gives S = 28.05 + R.

    If the cheater also gets the price back, and the chances of three seats are computed exactly, S is 29.4
    plus the reward and the restitution. The retrainers' reward is 3 and the restitution is 1, so S is 33.4.
    Fees are 3 x 1.1 / 60, and capital is 33.4 x 10 % x 5 / 365.
    """
    made = on_l2()
    audit = Audit(60, 1, 3, 7 * ONE // 10)
    lost_too = minimum_stake(audit, made.budget, made.budget)
    assert 28 * made.budget < lost_too < Fraction(285, 10) * made.budget
    amounts = derive(made, RULES)
    assert amounts.segments_per_verifier == 1
    assert amounts.retrain_reward == 3 * made.budget < amounts.stake // 8
    deterring = amounts.stake - amounts.retrain_reward - amounts.restitution
    assert 29 * made.budget < deterring < Fraction(295, 10) * made.budget
    assert amounts.reward == 2 * amounts.game_cost < amounts.stake // 8
    shares = {
        name: float(share) for name, share in trust_price(made, RULES, amounts).shares(made.budget).items()
    }
    assert shares == {
        "audit_fees": pytest.approx(0.055, abs=1e-4),
        "looks": 0,
        "draws_and_gas": pytest.approx(0.0001, abs=1e-4),
        "stake": pytest.approx(0.0457, abs=1e-4),
        "locks": pytest.approx(0.0006, abs=2e-4),
        "total": pytest.approx(0.1015, abs=5e-4),
    }
    assert shares["total"] < 0.12


def test_locks_cost_by_amount_and_time() -> None:
    """Capital costs 8 % a year. There is 1/4 year from the bid to the submission, and 1/2 year from there to
    the settlement. There are two seats of 11 and an escrow of 20.
    """
    rate = Fraction(8, 100)
    assert capital_cost(rate, 50, YEAR // 4) == 1
    capital = task_capital(
        rate,
        training=YEAR // 4,
        audit=YEAR // 2,
        stake=1000,
        delay_penalty=100,
        seat_lock=11,
        escrow=20,
    )
    assert asdict(capital) == {
        "stake": 40,
        "delay_penalty": 2,
        "seat": Fraction(44, 100),
        "escrow": Fraction(120, 100),
    }
    made = replace(on_l2(), training=YEAR // 4, audit=YEAR // 2)
    values = dict.fromkeys(OPTIONAL, 0) | {"stake": 1000, "delay_penalty": 100, "audit_fee": 10}
    values |= {"verifiers": 2, "segments_per_verifier": 1, "seat_lock": 11}
    price = trust_price(made, replace(RULES, capital_rate=rate), Amounts(**values))
    assert (price.audit_fees, price.stake, price.locks) == (20, 40, 5)


def test_the_number_of_segments_of_a_seat_is_the_cheapest() -> None:
    for segments in (1, 5, 60, 120, 400):
        made = on_l2(segments)
        best = derive(made, RULES)
        for q in range(1, min(segments, 64) + 1):
            other = derive(made, RULES, {"segments_per_verifier": q})
            assert trust_price(made, RULES, best).total <= trust_price(made, RULES, other).total + 10**16
    assert derive(on_l2(120), RULES).segments_per_verifier == 2
    assert derive(on_l2(400), RULES).segments_per_verifier > 2


def test_a_seat_locks_what_its_silence_costs() -> None:
    amounts = derive(on_l2(), RULES, {"segments_per_verifier": 3})
    assert amounts.seat_lock == 3 * amounts.audit_fee + RECOMMENDED.draw_fee


def test_half_of_a_seats_lock_pays_a_draw() -> None:
    amounts = derive(on_l2(), RULES, {"segments_per_verifier": 1, "audit_fee": 0})
    assert amounts.seat_lock == 2 * RECOMMENDED.draw_fee


def test_no_amounts_where_a_lock_holds_too_little_or_a_game_lasts_too_long() -> None:
    with pytest.raises(NoRecommendation, match="expected a stake of at most"):
        derive(on_l2(budget=MAX_LOCK), RULES)
    with pytest.raises(NoRecommendation, match="choose a shorter clock"):
        derive(on_l2(game_time=400 * DAY), RULES)


def test_terms_that_a_deployment_refuses_are_named_before_they_are_sent() -> None:
    made = on_l2()
    amounts = derive(made, RULES)
    fit = replace(
        terms(made, amounts),
        bidding_period=DAY,
        extension=DAY,
        attest_period=DAY,
        move_time=DAY,
        challenge_period=3 * DAY,
    )
    require_within_bounds(fit, RECOMMENDED)
    for name, spoiled in (
        ("bond", replace(fit, bond=amounts.bond - 1)),
        ("game_cost", replace(fit, game_cost=RECOMMENDED.game_floor - 1)),
        ("clock", replace(fit, clock=5)),
        # 30 days are enough for eight draws with an hour's delay each.
        ("attest_period", replace(fit, attest_period=30 * DAY // 8 - 3_600 + 1, challenge_period=5 * DAY)),
        # One state for the segment and two more, at 4 MiB a second.
        ("state_bytes", replace(fit, state_bytes=LINE * DAY // 3 + 1)),
        ("state_bytes", replace(fit, state_bytes=LINE * DAY // 4 + 1, move_time=DAY // 2)),
    ):
        with pytest.raises(TermsError, match=f"terms, {name}: expected .* on this deployment"):
            require_within_bounds(spoiled, RECOMMENDED)


def test_the_gas_of_duties_is_what_the_contracts_were_measured_to_take() -> None:
    measured = json.loads((VECTORS / "gas.json").read_text())
    packaged = json.loads(FILE.read_text())
    assert packaged == {name: measured[name] for name in packaged}
    assert gas_units() == 3 * TOKEN / Fraction(10**8)
