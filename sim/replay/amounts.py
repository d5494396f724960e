"""A market's amounts in the chain's units of 10^-18 token. They are deliberately not round, so that every
rounding shows.

The engine's unit is 10^-6 token, so an amount has twelve more digits on the chain than in the engine. These
twelve digits differ between amounts, and in most cases they are a prime number. Agents never see them. With
`exact`, they are zeros, so the chain's amounts are exactly 10^12 times the engine's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from protocol.chain.parameters import DEVNET, TOKEN, Parameters
from protocol.tasks.amounts import least_seat_lock
from protocol.tasks.task import ESCROW_DRAWS, LOOK_DRAWS
from sim.parameters import MarketParameters
from sim.units import DECIMALS

SCALE: Final = TOKEN // 10**DECIMALS
"""Number of the chain's units in one unit of the engine: 10^12."""

# Primes below 10^12 that keep the required ratios of the amounts: a reward is at most an eighth of the stake,
# and a bond is at most a quarter of the stake and at least twice a game's cost.
_REMAINDERS: Final = {
    "budget": 999_999_999_989,
    "stake": 999_999_999_961,
    "restitution": 799_999_999_991,
    "audit_fee": 699_999_999_989,
    "delay_penalty": 599_999_999_993,
    "draw_fee": 499_999_999_979,
    "stake_unit": 399_999_999_977,
    "bond": 249_999_999_973,
    "reward": 123_999_999_989,
    "game_cost": 111_999_999_989,
    "retrain_reward": 119_999_999_981,
}
STALL: Final = 1_000_000
"""The stall period in seconds, long enough that all redraws of a replay end earlier."""
OPENING: Final = 20_000
"""Seconds to open a commitment: longer than two games, but within a challenge window."""
_PRICE: Final = 99_999_999_977
_OUTSIDE: Final = 899_999_999_981
_LOCK: Final = 299_999_999_989


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
    bond: int
    reward: int
    game_cost: int
    retrain_reward: int
    exact: bool

    @classmethod
    def of(cls, parameters: MarketParameters, *, exact: bool = False) -> Amounts:
        """The amounts of these parameters, with twelve extra digits unless `exact`."""
        return cls(
            **{
                name: getattr(parameters, name) * SCALE + (0 if exact else remainder)
                for name, remainder in _REMAINDERS.items()
            },
            exact=exact,
        )

    def price(self, ask: int, solver: int) -> int:
        """Convert a solver's ask from engine units (`ask`) to chain units. Unless `exact`, asks that are
        equal in engine units differ in chain units: the solver with the lowest number asks the least.
        """
        return ask * SCALE + (0 if self.exact else _PRICE + 2 * solver)

    @property
    def outside(self) -> int:
        """Tokens that each account keeps outside the vault."""
        return _OUTSIDE

    def escrow(self, terms: MarketParameters) -> int:
        """The amount that a submitter locks: the budget, and the fees of all seats, looks and draws that the
        escrow may pay.
        """
        fees, draws = terms.verifiers * self.seat_fee(terms), ESCROW_DRAWS
        if terms.look_chance:
            fees, draws = fees + terms.slots * self.audit_fee, draws + LOOK_DRAWS
        return self.budget + fees + draws * self.draw_fee

    def seat_fee(self, terms: MarketParameters) -> int:
        """Payment to an attested seat."""
        return self.audit_fee * terms.segments_per_verifier

    def seat_lock(self, terms: MarketParameters) -> int:
        """The lock of a seat or look: the parameters' lock, but no less than the smallest lock that the
        market allows.
        """
        fee, looks = self.seat_fee(terms), int(terms.look_chance > 0)
        least = least_seat_lock(fee, self.draw_fee, self.game_cost, looks)
        given = terms.seat_lock * SCALE + (0 if self.exact else _LOCK)
        return max(least, given) if terms.seat_lock else least


def deployment_parameters(parameters: MarketParameters, *, exact: bool = False) -> Parameters:
    """Deployment parameters: a development chain's, with the market's amounts and with periods that suit a
    replay.

    The capital rate is 0, so a bond only needs to be twice a game's cost.
    """
    amounts = Amounts.of(parameters, exact=exact)
    return replace(
        DEVNET,
        stall_period=STALL,
        unbonding_period=2 * STALL,
        draw_fee=amounts.draw_fee,
        stake_unit=amounts.stake_unit,
        game_floor=1,
        capital_rate=0,
        opening_period=OPENING,
    )
