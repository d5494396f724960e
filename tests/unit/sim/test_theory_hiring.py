"""The price of hiring honest accounts is compared with sums by hand, and with the verifier's default offer."""

import pytest

from protocol.chain.parameters import TOKEN
from sim.theory import TheoryError, deterring_stake, hiring_price
from verifier.settings import VerifierSettings


def test_each_account_has_its_own_fee_and_each_task_a_draw() -> None:
    assert hiring_price(floors=[], draw_fee=7) == 0
    assert hiring_price(floors=[5], draw_fee=7) == 12
    assert hiring_price(floors=[5] * 32, draw_fee=7) == 160 + 7
    assert hiring_price(floors=[5] * 33, draw_fee=7) == 165 + 14
    assert hiring_price(floors=[5, 9, 5], draw_fee=1) == 19 + 2
    # Without fees, 32 accounts cost one draw: a tenth of a token.
    assert hiring_price(floors=[0] * 32, draw_fee=TOKEN // 10) == TOKEN // 10


def test_hiring_the_deterring_stake_costs_the_gain() -> None:
    """If the honest accounts together have exactly the deterring stake for a gain, hiring all of them costs
    that gain. The accounts' least fees follow the verifier's default offer, without gas: 2.7 tokens a seat
    per 1,000 tokens of stake.
    """
    settings = VerifierSettings()
    stake = deterring_stake(gain=1000 * TOKEN, capital_rate=0.1, seconds=settings.period)
    assert stake == pytest.approx(365_000 * TOKEN)
    accounts = 500
    floor = settings.least_seat_fee(int(stake) // accounts, gas_price=0).units
    assert hiring_price(floors=[floor] * accounts, draw_fee=0) == pytest.approx(1000 * TOKEN)


@pytest.mark.parametrize(
    "free", [{"capital_rate": 0.0, "seconds": 1.0}, {"capital_rate": 1.0, "seconds": 0.0}]
)
def test_no_stake_deters_where_floors_count_no_capital(free: dict[str, float]) -> None:
    with pytest.raises(TheoryError, match="above 0"):
        deterring_stake(gain=1.0, **free)
