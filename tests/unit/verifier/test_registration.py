"""The offer with which an account is registered, and its line in the log. The chain is a stub."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest
import structlog

from protocol.chain.accounts import DEVELOPMENT_CHAIN
from protocol.chain.client import Client
from protocol.chain.parameters import RECOMMENDED, TOKEN
from protocol.chain.views import Offer
from protocol.node.settings import SettingsError
from protocol.node.words import amount
from protocol.tasks.admission import Clocks
from verifier.registration import ensure_registered, standing
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


def registered(
    chain_id: int, others: Mapping[str, float] | None = None, **given: Any
) -> tuple[int, Offer, dict[str, Any]]:
    """Register an account, and return its level, its offer and the line in the log."""
    board = Board()
    client = SimpleNamespace(
        address="0x" + "11" * 20,
        audit=board,
        deployment=SimpleNamespace(parameters=RECOMMENDED),
        connection=SimpleNamespace(chain_id=chain_id, gas_price=GAS_PRICE),
        inclusion=24.0,
        tokens=lambda _account: (10**30, 0),
        fund=lambda _amount: None,
    )
    with structlog.testing.capture_logs() as lines:
        ensure_registered(cast(Client, client), VerifierSettings.model_validate(given), others)
    ((level, offer),) = board.made
    return level, offer, dict(lines[-1])


def test_the_floor_is_counted_from_the_stake_that_is_locked() -> None:
    level, offer, line = registered(1)
    stake = 800 * TOKEN
    assert (RECOMMENDED.stake_unit << level, offer.lock) == (stake, stake)
    counted = VerifierSettings().least_seat_fee(stake, GAS_PRICE)
    assert (offer.seat_fee, offer.period) == (counted.units, 864_000)
    assert line["seat_fee"] == amount(counted.units)
    assert line["made_of"] == str(counted)
    assert line["period"] == "10 d"


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
    assert (offer.seat_fee, line["seat_fee"], line["made_of"]) == (units, amount(units), why)


LEFT = 0.9 - (24 + 65 * 0.5) / 3_600
"""Share of the shortest period (an hour) that is left for computing. A tenth is kept for steps in progress;
a transaction takes 24 s, and 65 looks take half a second each.
"""


def test_all_accounts_of_a_process_share_what_is_done_in_time_whatever_they_are_drawn_into() -> None:
    _, offer, _ = registered(1, speed=6e9)
    assert offer.speed == int(2e9 * LEFT)
    shared = {"a": 5e8 * LEFT, "b": 5e8 * LEFT, "c": 5e8 * LEFT}
    _, offer, _ = registered(1, shared, speed=6e9)
    assert offer.speed == int(5e8 * LEFT)


@pytest.mark.parametrize(
    ("others", "given"),
    [({}, {"seat_speed": 2e9}), ({"a": 1.8e9}, {}), ({"a": 1e9 * LEFT}, {"seat_speed": 1.01e9 * LEFT})],
)
def test_an_offer_that_could_not_be_kept_beside_the_others_is_not_made(
    others: dict[str, float], given: dict[str, Any]
) -> None:
    """Three cases: the setting `seat_speed` alone is too fast; the other account takes everything; the
    setting exceeds what the other account leaves.
    """
    with pytest.raises(SettingsError, match=r"setting seat_speed: .*needed within 1 h"):
        registered(1, others, speed=6e9, **given)


def test_where_periods_are_short_seats_are_reckoned_with_ten_times_what_is_beside_computing() -> None:
    """A development chain has periods of two seconds, which are too short even for a transaction. There,
    seats are reckoned with periods ten times as long as the transaction and the looks take.
    """
    seats = standing("a", 1.0, 2, Clocks(2.0, 0.5))
    assert seats.shortest == 10 * (2 + 65 * 0.5)
    assert seats.beside == pytest.approx(0.2 * seats.shortest)
