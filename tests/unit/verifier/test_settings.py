"""The level and the offer that follow from a verifier's settings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from protocol.chain.duties import GAS
from protocol.chain.parameters import TOKEN
from protocol.dispute.looks import LEVELS
from protocol.node.settings import SettingsError
from protocol.node.words import amount, tokens
from protocol.tasks.admission import Standing
from sim.trust_table import DAY, MAINNET, ROLLUP, Chain
from tests.chain.trees import terms
from verifier.settings import VerifierSettings


def seats(given: VerifierSettings) -> float:
    """Operations a second for an account's seats, if transactions take no time."""
    return given.speed_of_seats(Standing("", 0.0, 1.0), 1 + len(given.further_accounts))


def settings(**given: Any) -> VerifierSettings:
    return VerifierSettings.model_validate(given)


@pytest.mark.parametrize(
    ("stake", "level"), [("10", 0), ("19.9", 0), ("20", 1), ("1000", 6), ("327680", 15), ("1e9", 15)]
)
def test_the_level_is_the_highest_that_the_stake_pays(stake: str, level: int) -> None:
    assert settings(stake=stake).level(10 * TOKEN) == level


def test_a_stake_below_a_unit_is_refused() -> None:
    with pytest.raises(SettingsError, match="unit of 10 tokens"):
        settings(stake="9.99").level(10 * TOKEN)


def test_an_offer_follows_from_what_the_machine_does_and_costs() -> None:
    given = settings(state_gib=0.5, speed=1e9, cost_per_hour="3.6")
    offer = given.offer(640 * TOKEN, 7, seats(given))
    assert (offer.seat_fee, offer.period) == (7, 10 * 86_400)
    assert (offer.speed, offer.state_bytes, offer.lock) == (10**9 // 3, 2**29, 640 * TOKEN)
    assert offer.fee == TOKEN // 1000, "a second's cost for what it does in a second"
    assert settings(speed=3.0, cost_per_hour="1e-15").offer(1, 0, 1).fee == 92_592_593, "rounded up"
    assert settings(lock="2.5").offer(640 * TOKEN, 0, 1).lock == 5 * TOKEN // 2
    fast = settings(speed=1e30, state_gib=1e6)
    most = fast.offer(1, 2**112, seats(fast))
    assert most.speed == 2**64 - 1
    assert most.state_bytes == 10**6 * 2**30
    assert most.seat_fee == 2**112 - 1
    assert settings(cost_per_hour="1e15", speed=1e-12).offer(1, 0, 1).fee == 2**112 - 1


def test_default_offers_pass_over_terms_without_time_for_the_replays() -> None:
    """A default offer does not accept a task whose replays take longer than the time for them. So a task that
    no honest account could attest in time gets too little stake for solvers to bid on it.
    """
    offer = replace(settings().offer(640 * TOKEN, 0, seats(settings())), fee=0)
    fits = replace(
        terms(), step_operations=2**40, segments_per_verifier=1, move_time=1, seat_lock=100 * TOKEN
    )
    needed = -(-fits.seat_operations // offer.speed)
    fits = replace(fits, attest_period=needed, challenge_period=2 * needed)
    assert offer.unmet(fits) == ()
    assert offer.unmet(replace(fits, attest_period=needed - 1)) == ("speed",)
    looked = replace(fits, look_chance=1, move_time=needed)
    assert offer.unmet(looked) == ()
    assert offer.unmet(replace(looked, move_time=needed - 1)) == ("speed",)


def test_accounts_of_one_machine_share_the_speed_that_they_offer() -> None:
    shared = settings(speed=9e8, further_accounts=("dev:3", "dev:4"))
    assert shared.offer(1, 0, seats(shared)).speed == 10**8
    said = settings(speed=9e8, further_accounts=("dev:3", "dev:4"), seat_speed=7e8)
    assert said.offer(1, 0, seats(said)).speed == 7 * 10**8
    games = settings(speed=9e8, further_accounts=("dev:3",), whistleblow=True)
    assert games.offer(1, 0, seats(games)).speed == 10**8, "a share is kept for games without a seat"
    # A transaction, looks and waiting for steps take one second of ten.
    assert shared.speed_of_seats(Standing("", 0.0, 10.0, 1.0), 3) == pytest.approx(0.9e8)


def test_the_least_fee_of_a_seat_is_its_gas_and_its_stakes_capital() -> None:
    given = settings(period_days=36.5, capital_rate="0.2", coin_price=2000)
    fee = given.least_seat_fee(500 * TOKEN, gas_price=10**9)
    assert fee.capital == 10 * TOKEN, "a tenth of a year at a fifth of the stake"
    assert fee.gas == (GAS.seat + GAS.reveal) * 2000 * 10**9, "2,000 tokens for 10^18 wei"
    assert fee.units == fee.gas + fee.capital
    assert str(fee) == f"{tokens(fee.units)} (gas {amount(fee.gas)}, capital 10)"


@pytest.mark.parametrize(
    ("chain", "tokens", "from_budget"),
    # A stake of one unit (50 tokens), and the 800 tokens that the default stake of 1,000 is enough for.
    [(ROLLUP, 50, 8), (ROLLUP, 800, 120), (MAINNET, 50, 24), (MAINNET, 800, 135)],
    ids=lambda value: getattr(value, "name", value),
)
def test_default_offers_take_the_recommended_terms_from_some_budget_on(
    chain: Chain, tokens: int, from_budget: int
) -> None:
    """With a budget of at least `from_budget`, the fee of a look reaches the minimum of the default settings,
    computed at the gas price of the terms. With a smaller budget, it does not. In these terms, the fee of a
    look equals the fee of a seat.
    """
    least = settings().least_seat_fee(tokens * TOKEN, int(chain.gas_price * 10**9)).units
    for budget in (from_budget - 1, from_budget, 10 * from_budget):
        amounts = chain.price(budget, 3).amounts
        assert (amounts.segments_per_verifier, amounts.look_chance > 0) == (1, True)
        assert (amounts.audit_fee >= least) == (budget >= from_budget), budget


@pytest.mark.parametrize("chain", [ROLLUP, MAINNET], ids=lambda chain: str(chain.name))
def test_default_offers_take_the_recommended_times(chain: Chain) -> None:
    assert chain.challenge_period + LEVELS * DAY <= settings().period
