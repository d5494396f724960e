"""Computes what a seat costs an account, apart from the cost of replays. By default, and except on a
development chain, the account's offer asks for at least this fee. Pure.

While an account has a seat, it cannot be drawn for another one. So a seat must have a price: otherwise a
solver could occupy all honest accounts with its own task for free (docs/security.md section 4). The cost of
replays is covered by another field of the offer, the minimum fee for each 10^9 operations (`Offer.fee`).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from protocol.chain.duties import GAS
from protocol.chain.recommendation import gas_units
from protocol.node.words import amount, tokens
from protocol.tasks.trust import capital_cost


@dataclass(frozen=True, slots=True)
class SeatFee:
    """The minimum fee of a seat, in two parts, each in token units."""

    gas: int
    """Cost of the gas for three calls: the attestation, the release, and the reveal that a looked-at seat
    must make.
    """
    capital: int
    """Cost of the account's stake while the seat binds it."""

    @property
    def units(self) -> int:
        """The sum of both parts in token units."""
        return self.gas + self.capital

    def __str__(self) -> str:
        """The sum and parts in words, in tokens."""
        return f"{tokens(self.units)} (gas {amount(self.gas)}, capital {amount(self.capital)})"


def seat_fee(
    stake: int, seconds: int, *, capital_rate: Fraction, gas_price: int, coin_price: Fraction
) -> SeatFee:
    """The least fee of a seat that binds an account for `seconds` seconds, if the account's stake is `stake`
    token units.

    `capital_rate` is the yearly cost of a locked token, as a fraction; `gas_price` is wei per gas;
    `coin_price` is the price of one coin of the chain in tokens. Each part is rounded up.
    """
    gas = (GAS.seat + GAS.reveal) * gas_units(gas_price, coin_price)
    return SeatFee(ceil(gas), ceil(capital_cost(capital_rate, stake, seconds)))
