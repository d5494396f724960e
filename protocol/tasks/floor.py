"""A solver's costs of a task, by parts: no bid is lower than their sum. Pure.

Amounts are token units, each part rounded up. The operator states the training time and power; the task's terms give
the stake, the penalty and the times; the deployment gives the draw delay.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from decimal import Decimal
from fractions import Fraction
from math import ceil
from typing import Final

from protocol.node.words import amount, tokens
from protocol.tasks.owed import REPLAYS
from protocol.tasks.task import TOKEN, Terms, replay_seconds

YEAR: Final = 365 * 86_400
TASK_GAS: Final = 670_000
"""Gas of one task: bid 106,000, assign 39,000, first progress 62,000, three more of 45,000, submit 170,000, settle
144,000; and 2 % for a larger tree. Draws are paid for. Further transactions, such as bids that were outbid, are not
counted.
"""
GAME_GAS: Final = 390_000
"""Gas of the solver in a false game: the step tree and three traces at 80,000 each, a split at 70,000. Deposits pay
for answers to demands, and what an earlier game has asked for is not sent again.
"""


@dataclass(frozen=True, slots=True)
class Costs:
    """The bidder's figures. `machine` and `power` are token units a second of training; `capital` is the yearly cost
    of a locked token and `late` the chance of missing the deadline, both as fractions; `gas` is the price of one gas
    in token units; `margin` is profit over all costs, a fraction.
    """

    machine: float
    power: float
    capital: float
    late: float
    gas: float
    margin: float

    @classmethod
    def of(
        cls,
        *,
        cost_per_hour: Decimal,
        watts: float,
        kwh_price: Decimal,
        capital: float,
        late: float,
        gas: Fraction,
        margin: float,
    ) -> Costs:
        """From an operator's figures: whole tokens for an hour of the machine and for a kWh, units for one gas."""
        return cls(
            machine=float(cost_per_hour * TOKEN / 3600),
            power=watts / 1000 * float(kwh_price * TOKEN / 3600),
            capital=capital,
            late=late,
            gas=float(gas),
            margin=margin,
        )


@dataclass(frozen=True, slots=True)
class Floor:
    """The least price, and its parts."""

    machine: int
    power: int
    capital: int
    delay: int
    gas: int
    margin: int

    @property
    def price(self) -> int:
        """The sum of all parts."""
        return sum(asdict(self).values())

    def __str__(self) -> str:
        """The sum, for people, in whole tokens."""
        parts = ", ".join(f"{name} {amount(units)}" for name, units in asdict(self).items())
        return f"{tokens(self.price)} ({parts})"


def floor(terms: Terms, needed: float, costs: Costs, draw_delay: float) -> Floor:
    """The floor of a task whose training takes `needed` seconds, where a draw waits `draw_delay` seconds for its
    round.

    The penalty is locked from the bid to the submission, the stake from there to the end of the challenge period,
    which begins with the draw. A solver that is late with chance r loses its costs, the penalty and the price; so a
    price p is profitable from p (1 - r) = costs + r penalty on, and the risk's part is r (costs + penalty) / (1
    - r).
    """
    return least_price(
        needed,
        costs,
        stake=terms.stake,
        delay_penalty=terms.delay_penalty,
        bidding=terms.bidding_period,
        audit=draw_delay + terms.challenge_period,
    )


def least_price(
    needed: float, costs: Costs, *, stake: int, delay_penalty: int, bidding: float, audit: float
) -> Floor:
    """`floor` of a task without terms yet: seconds of the bidding, and of the audit from the submission to the end of
    the challenge period.
    """
    machine, power = ceil(needed * costs.machine), ceil(needed * costs.power)
    before = delay_penalty * (bidding + needed)
    after = stake * audit
    capital = ceil((before + after) * costs.capital / YEAR)
    gas = ceil(TASK_GAS * costs.gas)
    spent = machine + power + capital + gas
    delay = ceil(costs.late * (spent + delay_penalty) / (1 - costs.late))
    return Floor(machine, power, capital, delay, gas, ceil((spent + delay) * costs.margin))


def game_cost(terms: Terms, operations_a_second: float, costs: Costs) -> int:
    """What a false challenge costs this solver at most, in token units: gas, the replays of a segment, and the
    capital of its stake during the game. The solver's half of a lost bond must cover it.
    """
    replays = REPLAYS * replay_seconds(terms, operations_a_second) * (costs.machine + costs.power)
    capital = terms.stake * 2 * terms.game_time * costs.capital / YEAR
    return ceil(GAME_GAS * costs.gas) + ceil(replays) + ceil(capital)
