"""What a deployment fixes for all its tasks (contracts/src/types/Parameters.sol). Token units and seconds."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any, Final

TOKEN: Final = 10**18
"""Units of one token: the test token has 18 decimals, as OpenZeppelin's ERC-20 has by default."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """Fields in the contract's order; the contract checks them when it is deployed."""

    min_period: int
    max_period: int
    min_clock: int
    max_clock: int
    draw_delay: int
    max_misses: int
    unbonding_period: int
    draw_fee: int
    stake_unit: int
    opening_period: int
    challenge_bond: int
    reward_cap: int

    def abi(self) -> tuple[int, ...]:
        """The struct as a tuple in ABI order."""
        return astuple(self)

    @classmethod
    def from_abi(cls, values: tuple[Any, ...]) -> Parameters:
        """Inverse of `abi`."""
        return cls(*values)


DEVNET: Final = Parameters(
    min_period=2,
    max_period=86_400,
    min_clock=2,
    max_clock=86_400,
    # Two blocks: nobody on a development chain grinds mixHash, and a demo should not wait.
    draw_delay=2,
    max_misses=2,
    unbonding_period=60,
    draw_fee=TOKEN // 10,
    stake_unit=10 * TOKEN,
    opening_period=600,
    challenge_bond=20 * TOKEN,
    reward_cap=50 * TOKEN,
)
"""For anvil with a block each second."""
