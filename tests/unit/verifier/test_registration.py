"""The offer that an account is registered with, and what the log says of it. The chain is a stand-in."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
import structlog

from protocol.chain.accounts import DEVELOPMENT_CHAIN
from protocol.chain.client import Client
from protocol.chain.parameters import RECOMMENDED, TOKEN
from protocol.chain.views import Offer
from verifier.registration import ensure_registered
from verifier.settings import VerifierSettings

GAS_PRICE = 10**7


class Board:
    """Notes what is registered."""

    def __init__(self) -> None:
        self.made: list[tuple[int, Offer]] = []

    def registration(self, _account: str) -> None:
        return None

    def register(self, level: int, offer: Offer) -> None:
        self.made.append((level, offer))


def registered(chain_id: int, **given: Any) -> tuple[int, Offer, dict[str, Any]]:
    """Level, offer, and the line of the log."""
    board = Board()
    client = SimpleNamespace(
        address="0x" + "11" * 20,
        audit=board,
        deployment=SimpleNamespace(parameters=RECOMMENDED),
        connection=SimpleNamespace(chain_id=chain_id, gas_price=GAS_PRICE),
        inclusion=24.0,
        tokens=lambda: (10**30, 0),
        fund=lambda _amount: None,
    )
    with structlog.testing.capture_logs() as lines:
        ensure_registered(cast(Client, client), VerifierSettings.model_validate(given))
    ((level, offer),) = board.made
    return level, offer, dict(lines[-1])


def test_the_floor_is_counted_from_the_stake_that_is_locked() -> None:
    level, offer, line = registered(1)
    stake = 800 * TOKEN
    assert (RECOMMENDED.stake_unit << level, offer.lock) == (stake, stake)
    counted = VerifierSettings().least_seat_fee(stake, GAS_PRICE)
    assert (offer.seat_fee, offer.period) == (counted.units, 864_000)
    assert line["seat_fee"] == counted.units
    assert line["made_of"] == str(counted)
    assert line["period"] == 864_000


@pytest.mark.parametrize(
    ("chain_id", "given", "units", "why"),
    [
        (1, {"seat_fee": "0.25"}, TOKEN // 4, "the setting seat_fee"),
        (1, {"seat_fee": 0}, 0, "the setting seat_fee"),
        (DEVELOPMENT_CHAIN, {}, 0, "a development chain"),
        (DEVELOPMENT_CHAIN, {"seat_fee": 2}, 2 * TOKEN, "the setting seat_fee"),
    ],
)
def test_a_setting_comes_first_and_a_development_chain_asks_nothing(
    chain_id: int, given: dict[str, Any], units: int, why: str
) -> None:
    _, offer, line = registered(chain_id, **given)
    assert (offer.seat_fee, line["seat_fee"], line["made_of"]) == (units, units, why)
