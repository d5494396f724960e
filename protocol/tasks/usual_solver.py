"""A solver with default settings: what `solver run` is by default, and what a submitter assumes before posting. Pure.

The price of a training's operations follows from it: an hour of 2 x 10^9 operations a second costs a token and 0.05
for power, so 10^12 operations cost 0.146 tokens, and 0.177 with the risk of delay and the margin.
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
"""Scalar operations a second."""
STAKE: Final = Decimal(1000)
"""Tokens."""
UPLINK_MBIT: Final = 100.0
COST_PER_HOUR: Final = Decimal(1)
"""Tokens, of the machine without its power."""
WATTS: Final = 200.0
KWH_PRICE: Final = Decimal("0.25")
"""Tokens."""
CAPITAL_RATE: Final = 0.1
"""A year, as a fraction."""
LATE_CHANCE: Final = 0.01
MARGIN: Final = 0.2
PACE: Final = 0.5
"""Seconds between two looks at the chain while there is something to do."""
MEGABIT: Final = 125_000
"""Bytes."""


def costs(gas: Fraction) -> Costs:
    """Its costs, at that many token units per gas."""
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
    """The figures by which it decides if it has nothing else to do: `gas` in token units each, a transaction's
    seconds until its receipt, and the deployment's draw delay.
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
