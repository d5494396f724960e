"""A solver's floor price for a task: the sum of its costs, by parts. The solver bids no lower. Pure.

Amounts are token units, and each part is rounded up. The operator gives the machine's speed and prices. The
task's terms give the stake, the penalty and the times. The deployment gives the draw delay.
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
"""The solver's gas for one task: bid 106,000, assign 39,000, first progress 62,000, three more of 45,000,
submit 170,000, settle 144,000; plus 2 %, because the task's segment tree may be larger than the measured one.
Others pay for draws. Further transactions, such as bids that were outbid, are not counted.
"""
GAME_GAS: Final = 390_000
"""The solver's gas for defending a right result in one game: the step tree and three traces at 80,000 each,
and a split at 70,000. Deposits pay for the answers to demands. Answers that an earlier game already requested
are not sent again.
"""


@dataclass(frozen=True, slots=True)
class Costs:
    """A bidder's rates of cost. `machine` and `power` are token units per second of training, and `gas` is
    token units per gas. The others are fractions: `capital` is the yearly cost of a locked token, `late` the
    chance of missing the deadline, and `margin` the profit as a share of all costs.
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
        """The costs from an operator's figures. `cost_per_hour` and `kwh_price` are tokens per hour of the
        machine and per kWh, and `gas` is token units per gas.
        """
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
    """The parts of the least price, in token units."""

    machine: int
    power: int
    capital: int
    delay: int
    gas: int
    margin: int

    @property
    def price(self) -> int:
        """The sum of all parts, in token units."""
        return sum(asdict(self).values())

    def __str__(self) -> str:
        """The sum and its parts in tokens, for messages."""
        parts = ", ".join(f"{name} {amount(units)}" for name, units in asdict(self).items())
        return f"{tokens(self.price)} ({parts})"


def floor(terms: Terms, needed: float, costs: Costs, draw_delay: float) -> Floor:
    """The floor of a task whose training takes `needed` seconds, if a draw waits `draw_delay` seconds for its
    round.

    The penalty is locked from the bid to the submission. The stake is locked from the submission to the end
    of the challenge period, which begins with the draw. A solver that is late (chance r) loses its costs, the
    penalty and the price. So it breaks even at the price p with p (1 - r) = costs + r penalty, and the part
    of p that covers the risk is r (costs + penalty) / (1 - r).
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
    """`floor` for a task that has no terms yet. `bidding` and `audit` are seconds; the audit lasts from the
    submission to the end of the challenge period.
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
    """The most that a false challenge costs this solver, in token units: gas, replays of a segment, and the
    capital cost of the solver's stake during the game. The solver gets half of the challenger's bond, and
    this half must cover the cost.
    """
    replays = REPLAYS * replay_seconds(terms, operations_a_second) * (costs.machine + costs.power)
    capital = terms.stake * 2 * terms.game_time * costs.capital / YEAR
    return ceil(GAME_GAS * costs.gas) + ceil(replays) + ceil(capital)
