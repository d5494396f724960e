"""Amounts of a replay: the engine's amounts, with twelve more digits that agents do not see."""

from __future__ import annotations

from dataclasses import replace

import pytest

from protocol.chain.parameters import TOKEN
from sim.parameters import MarketParameters
from sim.replay.amounts import SCALE, Amounts, deployment_parameters
from sim.replay.scenarios import SCENARIOS
from sim.units import TOKEN as UNITS

NAMES = [
    "budget",
    "stake",
    "restitution",
    "audit_fee",
    "delay_penalty",
    "draw_fee",
    "stake_unit",
    "bond",
    "reward",
    "game_cost",
    "retrain_reward",
]


def test_a_token_is_a_token() -> None:
    assert UNITS * SCALE == TOKEN


def test_amounts_are_the_parameters_and_odd() -> None:
    parameters = MarketParameters()
    amounts = Amounts.of(parameters)
    rests = set()
    for name in NAMES:
        units, rest = divmod(getattr(amounts, name), SCALE)
        assert units == getattr(parameters, name)
        assert rest % 2 == 1
        rests.add(rest)
    assert len(rests) == len(NAMES), "two amounts that end alike could be taken for each other"


def test_exact_amounts_have_no_more_digits() -> None:
    amounts = Amounts.of(MarketParameters(), exact=True)
    assert all(getattr(amounts, name) == getattr(MarketParameters(), name) * SCALE for name in NAMES)
    assert amounts.price(7, 3) == 7 * SCALE


@pytest.mark.parametrize("exact", [False, True])
def test_bounds_of_the_contracts_are_kept(exact: bool) -> None:
    """If parameters are exactly at the contracts' bounds, the amounts made from them are still within these
    bounds.
    """
    parameters = replace(
        MarketParameters(),
        budget=100,
        restitution=100,
        audit_fee=1,
        stake=400,
        reward=50,
        retrain_reward=50,
        game_cost=50,
        bond=100,
        delay_penalty=400,
        verifiers=1,
    )
    amounts = Amounts.of(parameters, exact=exact)
    assert amounts.restitution <= amounts.budget
    assert amounts.delay_penalty <= amounts.stake
    assert max(amounts.reward, amounts.retrain_reward) <= amounts.stake // 8
    assert 2 * amounts.game_cost <= amounts.bond <= amounts.stake // 4
    assert all(amounts.price(100, solver) <= amounts.budget for solver in range(20))


def test_looks_are_in_the_escrow_and_in_the_least_lock() -> None:
    terms = MarketParameters(verifiers=2, segments_per_verifier=3)
    looked = terms.with_values(
        {"look_chance": 0.1, "game_cost": 20 * UNITS, "bond": 40 * UNITS, "stake": 10**10}
    )
    amounts = Amounts.of(looked)
    assert amounts.escrow(looked) - amounts.escrow(terms) == 6 * amounts.audit_fee + 4 * amounts.draw_fee
    assert amounts.seat_lock(looked) == 4 * amounts.game_cost
    given = amounts.seat_lock(looked.with_values({"seat_lock": 90 * UNITS}))
    assert given // SCALE == 90 * UNITS
    assert given % 2, "an even lock has no rounding to see"


def test_of_equal_asks_the_first_is_lowest() -> None:
    """Of equal asks, the first counts as the lowest. The engine's auction breaks ties in the same way."""
    prices = [Amounts.of(MarketParameters()).price(60, solver) for solver in range(16)]
    assert prices == sorted(set(prices))
    assert prices[-1] < Amounts.of(MarketParameters()).price(61, 0)


def test_deployments_have_the_markets_parameters() -> None:
    parameters = SCENARIOS["honest"].parameters
    found = deployment_parameters(parameters)
    for name in ("draw_fee", "stake_unit"):
        assert getattr(found, name) // SCALE == getattr(parameters, name)
