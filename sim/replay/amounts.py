"""A market's amounts as the chain holds them: units of 10^-18 token, odd on purpose so that every rounding shows.

The engine's unit is 10^-6 token. The chain's twelve further digits are filled with a prime of its own for each amount;
agents never see them. With `exact` they are zeros: then the engine's own amounts, times 10^12, are the chain's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from protocol.chain.parameters import DEVNET, TOKEN, Parameters
from sim.parameters import MarketParameters
from sim.units import DECIMALS

SCALE: Final = TOKEN // 10**DECIMALS
"""Chain units in one of the engine's: 10^12."""

# Primes below 10^12, the largest for the amounts that must not be below another one.
_REMAINDERS: Final = {
    "budget": 999_999_999_989,
    "stake": 999_999_999_961,
    "restitution": 799_999_999_991,
    "audit_fee": 699_999_999_989,
    "delay_penalty": 599_999_999_993,
    "draw_fee": 499_999_999_979,
    "stake_unit": 399_999_999_977,
    "challenge_bond": 299_999_999_989,
    "reward_cap": 199_999_999_949,
}
_PRICE: Final = 99_999_999_977
_OUTSIDE: Final = 899_999_999_981


@dataclass(frozen=True, slots=True)
class Amounts:
    """Amounts of one market in chain units; names as in `MarketParameters`."""

    budget: int
    stake: int
    restitution: int
    audit_fee: int
    delay_penalty: int
    draw_fee: int
    stake_unit: int
    challenge_bond: int
    reward_cap: int
    exact: bool

    @classmethod
    def of(cls, parameters: MarketParameters, *, exact: bool = False) -> Amounts:
        """The amounts of these parameters, with twelve more digits unless `exact`."""
        return cls(
            **{
                name: getattr(parameters, name) * SCALE + (0 if exact else remainder)
                for name, remainder in _REMAINDERS.items()
            },
            exact=exact,
        )

    def price(self, ask: int, solver: int) -> int:
        """What a solver bids that asks so many of the engine's units; of equal asks the first one's is the lowest."""
        return ask * SCALE + (0 if self.exact else _PRICE + 2 * solver)

    @property
    def outside(self) -> int:
        """What everybody keeps in its pocket."""
        return _OUTSIDE

    def reserve(self, verifiers: int, each: int) -> int:
        """Audit fees in the escrow: q segments and segment K for each of V verifiers."""
        return self.audit_fee * verifiers * (each + 1)


def deployment_parameters(parameters: MarketParameters, *, exact: bool = False) -> Parameters:
    """Parameters of the deployment: the market's where it has them, else those of a development chain."""
    amounts = Amounts.of(parameters, exact=exact)
    return replace(
        DEVNET,
        max_misses=parameters.max_misses,
        draw_fee=amounts.draw_fee,
        stake_unit=amounts.stake_unit,
        challenge_bond=amounts.challenge_bond,
        reward_cap=amounts.reward_cap,
    )
