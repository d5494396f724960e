"""An attacker's cost of having honest accounts drawn for the attacker's tasks, so that no other task can draw
these accounts.

An account has one seat at a time, and its offer names the least fee that it accepts for a seat
(`Offer.seatFee`). So an attacker that pays this fee gets the account, and no way of drawing can make the
attacker pay more. Amounts are token units, times are seconds.
"""

from collections.abc import Sequence

from protocol.tasks.task import MAX_SEATS
from protocol.tasks.trust import YEAR
from sim.theory.bounds import TheoryError, count, number


def hiring_price(*, floors: Sequence[int], draw_fee: int) -> int:
    """Return the cost of tasks that bind all accounts: one fee per account, and one draw per task. `floors`
    are the accounts' least fees.

    A task has at most 32 seats, all at one fee, so each task here binds only accounts with the same fee.
    There is almost nothing to replay, so the accounts attest, and the escrow pays them. Gas is extra.
    """
    classes: dict[int, int] = {}
    for floor in floors:
        fee = count("floors", floor, 0)
        classes[fee] = classes.get(fee, 0) + 1
    tasks = sum(-(-accounts // MAX_SEATS) for accounts in classes.values())
    return sum(fee * accounts for fee, accounts in classes.items()) + tasks * count("draw_fee", draw_fee, 0)


def deterring_stake(*, gain: float, capital_rate: float, seconds: float) -> float:
    """Return a threshold for the total stake of the honest accounts. Above it, hiring all of them costs more
    than `gain`, even without gas and draws.

    An account's least fee covers the capital cost of its stake for the time that a seat binds it. So the sum
    of all accounts' least fees is (total stake) x rate x time / year.
    """
    rate, bound = number("capital_rate", capital_rate, 0), number("seconds", seconds, 0)
    if not rate * bound:
        raise TheoryError("capital_rate and seconds must be above 0: no floor counts capital else")
    return number("gain", gain, 0) * YEAR / (rate * bound)
