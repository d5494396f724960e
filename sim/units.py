"""Units of the simulation's numbers: how they are written, parsed and bounded.

In the engine, amounts are integers in token units; one token is 10^6 of these units. On the chain, the test
token has 10^18 units. The engine's unit is coarser, so that a run's sums stay well within 63 bits.
`sim.mechanism` works with either unit: the engine calls it with its units, and `sim replay` calls it with the
chain's amounts as Python integers.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import Final

from sim.errors import ParameterError

DECIMALS: Final = 6
TOKEN: Final = 10**DECIMALS
"""Number of the engine's token units in one token."""


class Unit(Enum):
    """Units of parameters and results."""

    TOKENS = "tokens"
    COUNT = "count"
    SHARE = "share"
    FACTOR = "factor"
    ROUNDS = "rounds"
    GAS = "gas"
    SECONDS = "seconds"

    @property
    def whole(self) -> bool:
        """Whether values are integers in the engine."""
        return self in (Unit.TOKENS, Unit.COUNT, Unit.ROUNDS, Unit.GAS, Unit.SECONDS)

    def parse(self, text: str) -> int | float:
        """Convert operator input to the engine's representation: tokens become token units.

        Raises ParameterError if the text is not a number of this unit.
        """
        try:
            value = Decimal(text)
        except InvalidOperation:
            value = Decimal("NaN")
        # No bound exceeds 10^20, and integers with a billion digits would exhaust the machine.
        if not value.is_finite() or abs(value.adjusted()) > 20:
            raise ParameterError(f"expected a number of {self.value}, got {text!r}; write digits")
        if self is Unit.TOKENS:
            value = value * TOKEN
        if not self.whole:
            return float(value)
        if value != value.to_integral_value():
            least = f"10^-{DECIMALS} tokens" if self is Unit.TOKENS else "1"
            raise ParameterError(f"expected a multiple of {least}, got {text!r}; round it")
        return int(value)

    def format(self, value: float) -> str:
        """Format an engine value for display; amounts are shown in tokens."""
        if self is Unit.TOKENS:
            whole = abs(value) >= 10**6 * TOKEN
            return f"{value / TOKEN:,.0f}" if whole else f"{value / TOKEN:,.6g}"
        return f"{value:,}" if self.whole else f"{value:.6g}"
