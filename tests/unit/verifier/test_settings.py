"""What a verifier's settings make of its stake, and what they offer."""

from __future__ import annotations

from typing import Any

import pytest

from protocol.chain.parameters import TOKEN
from protocol.node.settings import SettingsError
from verifier.settings import VerifierSettings


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
    given = settings(seat_hours=2, state_gib=0.5, speed=1e9, cost_per_hour="3.6")
    offer = given.offer(640 * TOKEN)
    assert (offer.operations, offer.state_bytes, offer.lock) == (7_200 * 10**9, 2**29, 640 * TOKEN)
    assert offer.fee == TOKEN // 1000, "a second's cost for what it does in a second"
    assert settings(speed=3.0, cost_per_hour="1e-15").offer(1).fee == 92_592_593, "rounded up"
    assert settings(lock="2.5").offer(640 * TOKEN).lock == 5 * TOKEN // 2
    most = settings(seat_hours=1e5, speed=1e12, state_gib=1e6).offer(1)
    assert most.operations == 2**64 - 1
    assert most.state_bytes == 10**6 * 2**30
