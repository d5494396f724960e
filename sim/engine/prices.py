"""Prices of gas and work in tokens, round by round: two random walks with constant expected value."""

from __future__ import annotations

import numpy as np

from sim.engine.streams import Streams
from sim.mechanism.arrays import Floats
from sim.parameters import MarketParameters
from sim.units import TOKEN


class Prices:
    """`gas`: token units per gas. `work`: present price of work that initially cost one token. Both are (rows,)."""

    def __init__(self, parameters: MarketParameters, random: Streams, rows: int) -> None:
        self.gas: Floats = np.full(rows, parameters.gas_price * TOKEN)
        self.work: Floats = np.ones(rows)
        self._walks = [
            (walk, spread)
            for walk, spread in (
                (self.gas, parameters.gas_volatility),
                (self.work, parameters.token_volatility),
            )
            if spread
        ]
        self._steady = not parameters.token_volatility
        self._random = random.prices

    def move(self) -> None:
        """Move to the next round."""
        for walk, spread in self._walks:
            walk *= np.exp(spread * self._random.normal() - spread**2 / 2)

    def costs(self, costs: Floats) -> Floats:
        """Costs of work at this round's prices, (n, rows). `costs` are those at initial prices."""
        return costs if self._steady else costs * self.work
