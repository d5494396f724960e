"""Second looks: the derived chances and locks deter seats from skipping their work, and no other chance of a
look costs less.
"""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given

from protocol.chain.duties import GAS
from protocol.chain.parameters import TOKEN, Parameters
from protocol.chain.recommendation import RULES
from protocol.chain.terms_bounds import bounds
from protocol.tasks.amounts import (
    LOOK_CHANCES,
    Amounts,
    NoRecommendation,
    Setting,
    audit_seconds,
    capital_cost,
    derive,
    deterrent_lock,
    lock_capital,
    look_fees,
    trust_price,
)
from tests.unit.tasks.priced import DAY, on_l2, settings, terms


def looked(made: Setting) -> Setting:
    """The setting with second looks."""
    return replace(made, look_chance=None)


def test_looks_and_locks_of_the_example_cost_a_hundredth_and_a_half_of_the_budget() -> None:
    """By hand: a lock is 2 x 0.0183 / (0.7 x 0.1) budgets. A task takes 3.33 locks on average. The tokens for
    locks are locked 30 % of the time.
    """
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
    assert shares["total"] == pytest.approx(0.1164, abs=0.001)


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
    assert fits(made, amounts, parameters)


def fits(made: Setting, amounts: Amounts, parameters: Parameters) -> bool:
    """Whether `seat_lock` and `game_cost` are within their bounds."""
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
    """The task's costs that depend on the chance of looks."""
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
    """The expected hours are computed by hand, counted from the draw of the seats. A draw comes 25 h after
    its request. Attestations take 12 h of the 24 h that they have, and then the next draw is requested.

    So the first draw of looks comes at 37 h, 13 h after the seats' deadline. If it picks a look, the next
    draw comes at 74 h, 13 h after the deadline of that look.
    """
    made = replace(on_l2(), draw_delay=25 * 3600, attest_period=DAY)
    e = Fraction(1, 10)
    some = [1 - (1 - e**level) ** 3 for level in range(5)]
    ends = [37, 74, 111, 148]
    begins = sum((some[n] - some[n + 1]) * ends[n] for n in range(4)) + some[4] * (148 + 24)
    assert audit_seconds(made, 1_000, 3) == made.audit + 3600 * (begins - 24)
    assert audit_seconds(made, 0, 3) == made.audit
    quick = replace(made, draw_delay=3600)
    # The look draw comes at 13 h, 11 h before the seats' deadline; the next at 26 h, 11 h before the looks'.
    begins = (
        (1 - some[1]) * 24 + sum((some[n] - some[n + 1]) * (13 * n + 24) for n in range(1, 4)) + some[4] * 76
    )
    assert audit_seconds(quick, 1_000, 3) == made.audit + 3600 * (begins - 24)
    certain = audit_seconds(made, 10_000, 3)
    assert certain == made.audit + 3600 * 4 * 37
