"""Derived amounts: they deter, they fit every bound of the contracts, and trust in a long task is cheap enough."""

import json
from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from protocol.chain.duties import FILE, GAS
from protocol.chain.parameters import DEVNET, RECOMMENDED, TOKEN, Parameters
from protocol.chain.recommendation import RULES, gas_units, setting
from protocol.chain.terms_bounds import bounds, require_within_bounds
from protocol.tasks.amounts import (
    LOOK_CHANCES,
    OPTIONAL,
    YEAR,
    Amounts,
    NoRecommendation,
    Setting,
    audit_seconds,
    capital_cost,
    derive,
    deterrent,
    deterrent_lock,
    lock_capital,
    look_fees,
    task_capital,
    trust_price,
)
from protocol.tasks.economics import ONE, Audit, escape_chance, minimum_stake
from protocol.tasks.task import MAX_LOCK, Terms, TermsError

DAY = 86_400
VECTORS = Path(__file__).parents[2] / "vectors"
L2 = MappingProxyType({"training_period": 7 * DAY, "game_time": 7 * DAY})
FIVE_DAYS = 5 * DAY - RECOMMENDED.draw_delay


def on_l2(segments: int = 60, budget: int = 1_000 * TOKEN, **changes: Any) -> Setting:
    """A task on a rollup, settled five days after its submission: 0.01 gwei a gas, 3,000 tokens a coin."""
    values: dict[str, Any] = {**L2, "challenge_period": FIVE_DAYS, **changes}
    return setting(RECOMMENDED, budget=budget, segments=segments, **values)


@st.composite
def settings(draw: st.DrawFn) -> tuple[Setting, Parameters]:
    parameters = replace(
        draw(st.sampled_from([DEVNET, RECOMMENDED])),
        game_floor=draw(st.integers(1, 100 * TOKEN)),
        draw_fee=draw(st.integers(0, TOKEN)),
        capital_rate=draw(st.integers(0, 3_000)),
    )
    made = setting(
        parameters,
        budget=draw(st.integers(1, 10**7 * TOKEN)),
        segments=draw(st.integers(1, 5_000)),
        training_period=draw(st.integers(1, 90 * DAY)),
        challenge_period=draw(st.integers(1, 30 * DAY)),
        game_time=draw(st.integers(1, 14 * DAY)),
        gas_price=draw(st.fractions(0, 10**14, max_denominator=1000)),
    )
    return made, parameters


def terms(made: Setting, amounts: Amounts) -> Terms:
    """Terms with these amounts; raises TermsError for what no deployment takes."""
    root = bytes(31) + b"\1"
    return Terms(
        program_id=root,
        constants_root=root,
        initial_state=root,
        bundle_hash=root,
        constants=1,
        state_tensors=1,
        segments=made.segments,
        segment_steps=1,
        step_operations=1,
        state_bytes=1,
        budget=made.budget,
        bidding_period=1,
        training_period=made.training,
        challenge_period=made.audit + 2,
        attest_period=1,
        extension=1,
        clock=made.game_time,
        replay_allowance=0,
        arithmetic=1,
        thinning=1,
        move_time=1,
        bundle="http://127.0.0.1/",
        **amounts.terms(),
    )


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
    """At any price, with the reward, the restitution and the price itself in the cheater's hands."""
    made, _ = case
    amounts = derive(made, RULES)
    false = 1 + false % made.segments
    price = made.budget * millionths // 10**6
    audit = Audit(
        made.segments, amounts.segments_per_verifier, amounts.verifiers, int(RULES.honest_share * ONE)
    )
    caught = 1 - Fraction(escape_chance(audit, false), ONE)
    lost = amounts.stake - amounts.reward - amounts.restitution
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
            grown = f"a stake of at most {MAX_LOCK}" in str(refused)
        else:
            names = ("audit_fee", "game_cost", "stake")
            grown = all(getattr(found, name) >= getattr(less, name) for name in names)
        assert grown


def test_a_stake_that_is_given_bounds_what_is_paid_from_it() -> None:
    made = on_l2(segments=8, budget=100 * TOKEN)
    drawn = {"verifiers": 1, "segments_per_verifier": 2}
    own = {"stake": 240 * TOKEN, "audit_fee": 2 * TOKEN, "restitution": 80 * TOKEN, **drawn}
    amounts = derive(made, RULES, own)
    # Of 240 tokens 60 burn; 80 are restitution, 27.5 a game's cost and 4 a seat's fee.
    assert amounts.reward == amounts.retrain_reward == 30 * TOKEN == amounts.stake // 8
    assert terms(made, amounts).owed < 180 * TOKEN
    assert deterrent(made, RULES, amounts) > amounts.stake
    own["restitution"] = 100 * TOKEN
    amounts = derive(made, RULES, {**own, "verifiers": 2, "game_cost": 22 * TOKEN})
    assert terms(made, amounts).owed == 180 * TOKEN < terms(made, amounts).stake
    with pytest.raises(NoRecommendation, match=r"expected at least 2.* choose a lower game_cost"):
        derive(made, RULES, {**own, "stake": 200 * TOKEN})


def test_trust_costs_less_than_an_eighth_of_the_price_on_a_rollup() -> None:
    """audit.md section 5 on paper: 28.05 budgets and the reward, by n / K >= (G + p / K) / (h (S - R + p)); with the
    price given back and chances of three seats 29.4. Fees 3 x 1.1 / 60, capital 30.5 x 10 % x 5 / 365.
    """
    made = on_l2()
    audit = Audit(60, 1, 3, 7 * ONE // 10)
    lost_too = minimum_stake(audit, made.budget, made.budget)
    assert 28 * made.budget < lost_too < Fraction(285, 10) * made.budget
    amounts = derive(made, RULES)
    assert amounts.segments_per_verifier == 1
    deterring = amounts.stake - amounts.reward - amounts.restitution
    assert 29 * made.budget < deterring < Fraction(295, 10) * made.budget
    assert amounts.reward == 2 * amounts.game_cost < amounts.stake // 8
    shares = {
        name: float(share) for name, share in trust_price(made, RULES, amounts).shares(made.budget).items()
    }
    assert shares == {
        "audit_fees": pytest.approx(0.055, abs=1e-4),
        "looks": 0,
        "draws_and_gas": pytest.approx(0.0001, abs=1e-4),
        "stake": pytest.approx(0.0417, abs=1e-4),
        "locks": pytest.approx(0.0006, abs=2e-4),
        "total": pytest.approx(0.0975, abs=5e-4),
    }
    assert shares["total"] < 0.12


def test_locks_cost_by_amount_and_time() -> None:
    """A quarter of a year to the submission, a half to the settlement, at 8 %; two seats of 11 each, fees of 20."""
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
    ):
        with pytest.raises(TermsError, match=f"terms, {name}: expected .* on this deployment"):
            require_within_bounds(spoiled, RECOMMENDED)


def test_the_gas_of_duties_is_what_the_contracts_were_measured_to_take() -> None:
    measured = json.loads((VECTORS / "gas.json").read_text())
    packaged = json.loads(FILE.read_text())
    assert packaged == {name: measured[name] for name in packaged}
    assert gas_units() == 3 * TOKEN / Fraction(10**8)


def looked(made: Setting) -> Setting:
    """With second looks."""
    return replace(made, look_chance=None)


def test_looks_and_locks_of_the_example_cost_a_hundredth_and_a_half_of_the_budget() -> None:
    """Decided by hand: L = 2 x 0.0183 / (0.7 x 0.1) budgets, 3.33 locks of which are 30 % of the time in a seat."""
    made = looked(on_l2())
    amounts = derive(made, RULES)
    shares = {
        name: float(share) for name, share in trust_price(made, RULES, amounts).shares(made.budget).items()
    }
    days = float(audit_seconds(made, 1_000, 3)) / DAY
    assert 5 < days < 5.1, "the draw of looks waits too, and what is picked takes longer"
    assert (amounts.segments_per_verifier, amounts.look_chance) == (1, 1_000)
    assert amounts.seat_lock / made.budget == pytest.approx(0.524, abs=0.001)
    assert shares["looks"] == pytest.approx(3 * 0.1111 * 0.01833 + 2.3e-4 * 0.58, abs=1e-4)
    assert lock_capital(made, RULES, amounts) / made.budget == pytest.approx(
        3.333 * 0.524 * 0.1 * days / 365 / 0.3, rel=0.005
    )
    assert shares["total"] == pytest.approx(0.112, abs=0.001)


@given(settings())
def test_skipping_never_pays_with_derived_looks(case: tuple[Setting, Parameters]) -> None:
    made, parameters = case
    made = looked(made)
    amounts = derive(made, RULES)
    picked = 1 - (1 - Fraction(amounts.look_chance, 10_000)) ** amounts.segments_per_verifier
    assert picked * RULES.honest_share * (amounts.seat_lock // 2) > amounts.seat_fee
    assert amounts.seat_lock >= max(deterrent_lock(RULES, amounts), 4 * amounts.game_cost)
    assert amounts.slots <= 32
    assert amounts.audit_fee >= made.gas_price * GAS.seat, "a looker of one segment is paid its gas"
    assert require_fits(made, amounts, parameters)


def require_fits(made: Setting, amounts: Amounts, parameters: Parameters) -> bool:
    """Bounds of the amounts that looks change."""
    posted = terms(made, amounts)
    found = {bound.field: bound for bound in bounds(posted, replace(parameters, stake_unit=10**9 * TOKEN))}
    return all(
        found[name].least <= getattr(posted, name) <= found[name].most for name in ("seat_lock", "game_cost")
    )


@given(settings())
def test_no_other_chance_of_a_look_costs_less(case: tuple[Setting, Parameters]) -> None:
    made = looked(case[0])
    amounts = derive(made, RULES)
    least = _price(made, amounts)
    for chance in LOOK_CHANCES:
        given = {"look_chance": chance, "segments_per_verifier": amounts.segments_per_verifier}
        assert _price(made, derive(made, RULES, given)) >= least


def _price(made: Setting, amounts: Amounts) -> Fraction:
    """What the choice changes."""
    audit = audit_seconds(made, amounts.look_chance, amounts.slots)
    stake = capital_cost(RULES.capital_rate, amounts.stake, audit)
    fees = amounts.verifiers * amounts.seat_fee
    return fees + stake + look_fees(made, amounts) + lock_capital(made, RULES, amounts)


@given(settings())
def test_without_looks_all_is_as_if_there_were_none(case: tuple[Setting, Parameters]) -> None:
    made, _ = case
    plain = derive(made, RULES)
    assert plain == derive(looked(made), RULES, {"look_chance": 0})
    price = trust_price(made, RULES, plain)
    assert price == trust_price(replace(looked(made), utilisation=Fraction(1, 9)), RULES, plain)
    assert (plain.look_chance, price.looks) == (0, 0)


def test_a_given_lock_gets_a_chance_at_which_it_deters() -> None:
    made = looked(on_l2())
    lock = made.budget // 4
    amounts = derive(made, RULES, {"seat_lock": lock})
    assert amounts.seat_lock == lock >= deterrent_lock(RULES, amounts)
    smaller = LOOK_CHANCES[LOOK_CHANCES.index(amounts.look_chance) - 1]
    assert lock < deterrent_lock(RULES, replace(amounts, look_chance=smaller))


def test_no_lock_deters_where_no_looker_is_honest() -> None:
    given = {"stake": 40 * on_l2().budget}
    with pytest.raises(NoRecommendation, match=r"no lock deters.*expected both above 0"):
        derive(looked(on_l2()), replace(RULES, honest_share=Fraction(0)), given)


def test_looks_put_the_settlement_off() -> None:
    """By hand, in hours: draws 25 after they are asked for, attestations in 12 of 24. The look draw comes at 37, when
    seats are due since 13; if it picks, the next one comes at 74, when looks are due since 13.
    """
    made = replace(on_l2(), draw_delay=25 * 3600, attest_period=DAY)
    e = Fraction(1, 10)
    some = [1 - (1 - e**level) ** 3 for level in range(5)]
    ends = [37, 74, 111, 148]
    begins = sum((some[n] - some[n + 1]) * ends[n] for n in range(4)) + some[4] * (148 + 24)
    assert audit_seconds(made, 1_000, 3) == made.audit + 3600 * (begins - 24)
    assert audit_seconds(made, 0, 3) == made.audit
    quick = replace(made, draw_delay=3600)
    # 13 h after the first draw, seats are due 11 later; 26 h after it, looks 11 later.
    begins = (
        (1 - some[1]) * 24 + sum((some[n] - some[n + 1]) * (13 * n + 24) for n in range(1, 4)) + some[4] * 76
    )
    assert audit_seconds(quick, 1_000, 3) == made.audit + 3600 * (begins - 24)
    certain = audit_seconds(made, 10_000, 3)
    assert certain == made.audit + 3600 * 4 * 37
