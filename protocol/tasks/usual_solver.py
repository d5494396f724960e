"""The usual solver: a solver with the default settings of `solver run`. A submitter assumes these settings
before posting. Pure.

The price of a training's operations follows from these settings. An hour at 2 x 10^9 operations a second
costs one token for the machine and 0.05 tokens for its power. So 10^12 operations cost 0.146 tokens, or 0.177
with the risk of delay and the margin.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Final

from protocol.tasks.admission import Clocks, Rates
from protocol.tasks.bidding import OPENING
from protocol.tasks.floor import Costs
from protocol.tasks.offers import Figures
from protocol.tasks.task import TOKEN

SPEED: Final = 2e9
"""Scalar operations a second of the usual solver."""
STAKE: Final = Decimal(1000)
"""Tokens that the usual solver can lock."""
UPLINK_MBIT: Final = 100.0
COST_PER_HOUR: Final = Decimal(1)
"""Tokens per hour of the machine, without its power."""
WATTS: Final = 200.0
KWH_PRICE: Final = Decimal("0.25")
"""Tokens per kWh."""
CAPITAL_RATE: Final = 0.1
"""Yearly cost of capital, as a fraction."""
LATE_CHANCE: Final = 0.01
MARGIN: Final = 0.2
PACE: Final = 0.5
"""Seconds between two reads of the chain's state while the solver has something to do."""
MEGABIT: Final = 125_000
"""Bytes in a megabit."""


def costs(gas: Fraction) -> Costs:
    """The usual solver's costs; `gas` is the price of one gas in token units."""
    return Costs.of(
        cost_per_hour=COST_PER_HOUR,
        watts=WATTS,
        kwh_price=KWH_PRICE,
        capital=CAPITAL_RATE,
        late=LATE_CHANCE,
        gas=gas,
        margin=MARGIN,
    )


def figures(gas: Fraction, inclusion: float, draw_delay: float) -> Figures:
    """The figures with which the usual solver decides on a bid if it has no other tasks. `gas` is the price
    of one gas in token units, `inclusion` the seconds from sending a transaction to its receipt, and
    `draw_delay` the deployment's draw delay.
    """
    return Figures(
        free=int(STAKE * TOKEN),
        rates=Rates(SPEED),
        costs=costs(gas),
        opening=float(OPENING),
        clocks=Clocks(inclusion, PACE),
        draw_delay=draw_delay,
        uplink=UPLINK_MBIT * MEGABIT,
    )
