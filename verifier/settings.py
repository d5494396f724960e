"""Settings of `verifier watch`: flags over ASSAY_* over the [verifier] table of config.toml over these defaults.

Amounts are whole tokens; they become token units where they meet the chain. Importing this loads pydantic, so the
command line does it only when it runs.
"""

from __future__ import annotations

from decimal import ROUND_UP, Decimal
from fractions import Fraction
from ipaddress import IPv4Address, IPv6Address
from typing import Annotated, ClassVar, Final

from pydantic import Field

from protocol.chain.parameters import TOKEN
from protocol.chain.views import Offer
from protocol.node.party.settings import NodeSettings, WebUrl
from protocol.node.settings import SettingsError
from protocol.tasks.admission import Rates, Standing, most_operations
from verifier.seat_fee import SeatFee, seat_fee

MOST_LEVEL: Final = 15
"""A stake is at most 2^15 units (contracts/src/interfaces/IAuditBoard.sol)."""
MOST_FEE: Final = 2**112 - 1
"""Most token units that an offer may ask (contracts/src/types/Seats.sol): 5 x 10^15 tokens."""
Tokens = Annotated[Decimal, Field(ge=0, le=10**15)]


class VerifierSettings(NodeSettings):
    """What an operator may choose. `url` is the public address of the HTTP service, where it is not its own."""

    MONITOR_PORT: ClassVar[int] = 8713

    account: str = "dev:2"
    further_accounts: tuple[str, ...] = ()
    """Accounts that take seats too, each one at a time for its own stake. Each challenges what is false in its seats,
    with tokens for bonds and coin for its own games; what is found without a seat, `account` challenges.
    """
    stake: Tokens = Decimal(1000)
    """Tokens that each account locks at most: the largest power of two of the deployment's units that they pay. What is
    drawn grows with it. 0: not registered, as a mere whistleblower may be.
    """
    seat_speed: Annotated[float, Field(gt=0, lt=2**64)] | None = None
    """No seat whose replays need more operations a second, to be done within the attestation period, with looks within
    a move time. Without, what can be done in time whatever all accounts are drawn into: a third of `speed`, for the
    machine does other work, by the number of its accounts; who replays without seats keeps a share for games.
    """
    state_gib: Annotated[float, Field(gt=0, le=10**6)] = 8
    """No seat of a task whose states are larger."""
    lock: Tokens | None = None
    """No seat that binds more tokens of the stake; without, it may bind all."""
    cost_per_hour: Tokens = Decimal(1)
    """Of the machine while it replays, with its power: no seat that pays less."""
    seat_fee: Tokens | None = None
    """No seat that pays fewer tokens, however little is to be replayed; without, what `verifier.seat_fee` counts: gas
    at its present price, and the capital of the account's stake for `period_days`. On a development chain 0 then.
    """
    period_days: Annotated[float, Field(gt=0, le=10**4)] = 10
    """No seat whose task's terms bind the account longer: the challenge period, and with looks four attestation periods
    more. By the recommended terms of docs/economics.md it is 7 days on an L2, 9 on an L1.
    """
    capital_rate: Annotated[Decimal, Field(ge=0, le=10)] = Decimal("0.1")
    """What a locked token costs in a year, as a fraction."""
    coin_price: Tokens = Decimal(3000)
    """Tokens for one of the chain's coin, which gas is paid in."""
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 8703
    """Where results are served that a seat holds; 0: any free port."""
    url: WebUrl | None = None
    proxies: tuple[IPv4Address | IPv6Address, ...] = ()
    """Of proxies in front of this server: their connections are those of many clients."""
    whistleblow: bool = False
    """Replay all segments of every submitted task, drawn or not."""
    games: Annotated[int, Field(ge=1, le=64)] = 4
    """Games whose trees are open side by side, each in memory; the earliest deadline goes first."""
    replays: Annotated[int, Field(ge=1, le=64)] = 2
    """Segments replayed side by side, each in memory."""
    fetches: Annotated[int, Field(ge=1, le=256)] = 8
    """Tasks whose bundle or checkpoints are fetched side by side, each in memory as far as it has come."""
    spare_gib: Annotated[float, Field(ge=0, le=10**6)] = 20
    """Of the disk, at most a tenth of it: where less is free nothing is kept for claimants beside what a juror's vote
    binds it to. Where less than a tenth of `spare_gib` is free no bundle is fetched.
    """

    @property
    def spare_bytes(self) -> int:
        """`spare_gib` in bytes."""
        return int(self.spare_gib * 2**30)

    def level(self, unit: int) -> int:
        """k: the stake pays 2^k units of so many token units. Raises SettingsError if it pays none."""
        units = int(self.stake * TOKEN) // unit
        if not units:
            raise SettingsError(
                "setting stake",
                expected=f"at least the deployment's unit of {Decimal(unit) / TOKEN:f} tokens",
                got=self.stake,
                remedy="raise it, or set it to 0 to be in no draw",
            )
        return min(MOST_LEVEL, units.bit_length() - 1)

    @property
    def period(self) -> int:
        """`period_days` in whole seconds, at most what an offer holds."""
        return min(int(self.period_days * 86_400), 2**32 - 1)

    def least_seat_fee(self, stake: int, gas_price: int) -> SeatFee:
        """What a seat costs by these settings for a stake of so many token units, at so many wei for one gas."""
        rate, coin = Fraction(self.capital_rate), Fraction(self.coin_price)
        return seat_fee(stake, self.period, capital_rate=rate, gas_price=gas_price, coin_price=coin)

    def speed_of_seats(self, seats: Standing, accounts: int) -> float:
        """Operations a second that an account's seats may need, for so many accounts to be in time."""
        if self.seat_speed is not None:
            return self.seat_speed
        return most_operations(seats, accounts + self.whistleblow, Rates(self.speed))

    def offer(self, stake: int, least_fee: int, speed: float) -> Offer:
        """What seats are taken for a stake of so many token units, none that pays less than `least_fee` of them, or
        needs more than `speed` operations a second.
        """
        fee = self.cost_per_hour * TOKEN * 10**9 / 3600 / Decimal(self.speed)
        return Offer(
            speed=min(int(speed), 2**64 - 1),
            state_bytes=min(int(self.state_gib * 2**30), 2**64 - 1),
            lock=stake if self.lock is None else int(self.lock * TOKEN),
            fee=min(int(fee.to_integral_value(ROUND_UP)), MOST_FEE),
            seat_fee=min(least_fee, MOST_FEE),
            period=self.period,
        )
