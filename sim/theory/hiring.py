"""What it costs to have honest accounts drawn for your own task, so that they cannot be drawn for another's.

An account has one seat at a time and its offer names the least fee that it sits for (`Offer.seatFee`). So paying that
fee secures the account; no draw can do better than to make an attacker pay it. Amounts are token units, times
seconds.
"""

from collections.abc import Sequence

from protocol.tasks.task import MAX_SEATS
from protocol.tasks.trust import YEAR
from sim.theory.bounds import TheoryError, count, number


def hiring_price(*, floors: Sequence[int], draw_fee: int) -> int:
    """Return what tasks cost that bind all accounts with these least fees: each account its fee, each task a draw.

    A task has at most 32 seats at one fee, so here it binds accounts of one fee alone. They attest, since next to
    nothing is to be replayed, and the escrow pays them. Gas comes on top.
    """
    classes: dict[int, int] = {}
    for floor in floors:
        fee = count("floors", floor, 0)
        classes[fee] = classes.get(fee, 0) + 1
    tasks = sum(-(-accounts // MAX_SEATS) for accounts in classes.values())
    return sum(fee * accounts for fee, accounts in classes.items()) + tasks * count("draw_fee", draw_fee, 0)


def deterring_stake(*, gain: float, capital_rate: float, seconds: float) -> float:
    """Return the honest stake from which on hiring all of it costs more than `gain`, gas and draws left out.

    Floors count the stake's capital for the time that a seat binds it, so they add up to stake x rate x time / year.
    """
    rate, bound = number("capital_rate", capital_rate, 0), number("seconds", seconds, 0)
    if not rate * bound:
        raise TheoryError("capital_rate and seconds must be above 0: no floor counts capital else")
    return number("gain", gain, 0) * YEAR / (rate * bound)
