"""Settings of `verifier watch`. Each comes from the first source that sets it: a flag, an ASSAY_* variable,
the [verifier] table of config.toml, or the default here.

Amounts are in tokens; they are converted to token units when passed to the chain. Importing this module
loads pydantic, so the command line imports it only in commands that need it.
"""

from __future__ import annotations

from decimal import ROUND_UP, Decimal
from fractions import Fraction
from ipaddress import IPv4Address, IPv6Address
from typing import Annotated, ClassVar, Final

from pydantic import Field

from protocol.chain.parameters import TOKEN
from protocol.chain.views import Offer
from protocol.node.party.settings import Host, NodeSettings, WebUrl
from protocol.node.settings import SettingsError
from protocol.tasks.admission import Rates, Standing, most_operations
from verifier.seat_fee import SeatFee, seat_fee

MOST_LEVEL: Final = 15
"""Largest k for which a stake can be 2^k units (contracts/src/interfaces/IAuditBoard.sol)."""
MOST_FEE: Final = 2**112 - 1
"""The largest fee in token units that an offer can hold (contracts/src/types/Seats.sol): 5 x 10^15 tokens."""
Tokens = Annotated[Decimal, Field(ge=0, le=10**15)]


class VerifierSettings(NodeSettings):
    """The operator's options. `url` is the public address of the HTTP service, if it is not the address on
    which the service listens.
    """

    MONITOR_PORT: ClassVar[int] = 8713

    account: str = "dev:2"
    further_accounts: tuple[str, ...] = ()
    """Further accounts that take seats. Each takes one seat at a time and has a separate stake. Each
    challenges differences in its own seats, and needs tokens for bonds and coin for its games. `account`
    challenges differences found without a seat.
    """
    stake: Tokens = Decimal(1000)
    """The stake of each account in tokens, rounded down to a power of two of the deployment's units. The
    chance to be drawn grows with it. 0: not registered, as for a pure whistleblower.
    """
    seat_speed: Annotated[float, Field(gt=0, lt=2**64)] | None = None
    """Refuse a seat whose replays would need more operations a second than this to end in time. In time means
    within the attestation period or, for a look, within a move time. If unset, the limit is the speed at
    which all accounts finish in time even if all are drawn. It is then less than a third of `speed` / (number
    of accounts), because the machine also does other work. A verifier that also replays without seats counts
    as one more account.
    """
    state_gib: Annotated[float, Field(gt=0, le=10**6)] = 8
    """Refuse seats of a task whose states are larger than this."""
    lock: Tokens | None = None
    """Refuse seats that bind more than this many tokens of the stake; if unset, a seat may bind all of it."""
    cost_per_hour: Tokens = Decimal(1)
    """Cost of the machine in tokens per hour of replaying, including electricity. Seats that pay less are refused."""
    seat_fee: Tokens | None = None
    """Refuse seats that pay fewer tokens than this, however little must be replayed. If unset,
    `verifier.seat_fee` computes the limit from the present price of gas and the cost of locking the account's
    stake for `period_days`; 0 on a development chain.
    """
    period_days: Annotated[float, Field(gt=0, le=10**4)] = 10
    """Refuse a seat if the terms of its task bind the account for more days than this. Terms bind it for the
    challenge period and, with looks, for four more attestation periods. With the recommended terms of
    docs/economics.md, that is 7 days on an L2, and 9 on an L1.
    """
    capital_rate: Annotated[Decimal, Field(ge=0, le=10)] = Decimal("0.1")
    """Yearly cost of a locked token, as a fraction."""
    coin_price: Tokens = Decimal(3000)
    """Price in tokens of one coin of the chain, in which gas is paid."""
    host: Host = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 8703
    """Port of the service for results and salts; 0: any free port."""
    url: WebUrl | None = None
    proxies: tuple[IPv4Address | IPv6Address, ...] = ()
    """Addresses of proxies in front of this server. Connections from them count as connections of many clients."""
    whistleblow: bool = False
    """Replay all segments of every submitted task, drawn or not."""
    games: Annotated[int, Field(ge=1, le=64)] = 4
    """Maximum number of games that have their trees open at the same time. Each takes memory; the game with
    the earliest deadline goes first.
    """
    replays: Annotated[int, Field(ge=1, le=64)] = 2
    """Segments replayed side by side. Each takes memory."""
    fetches: Annotated[int, Field(ge=1, le=256)] = 8
    """Tasks whose bundle or checkpoints are fetched side by side. Fetched parts are in memory."""
    spare_gib: Annotated[float, Field(ge=0, le=10**6)] = 20
    """Disk space to keep free: this many GiB, or a tenth of the disk if that is less. If there is less free
    space, nothing is kept for claimants except the items that jurors' votes require. If less than a tenth of
    `spare_gib` is free, no bundle is fetched.
    """

    @property
    def spare_bytes(self) -> int:
        """`spare_gib` in bytes."""
        return int(self.spare_gib * 2**30)

    def level(self, unit: int) -> int:
        """The exponent of the stake: the largest k, up to `MOST_LEVEL`, for which `stake` covers 2^k units.
        One unit is `unit` token units. Raises SettingsError if `stake` is less than one unit.
        """
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
        """`period_days` in whole seconds, limited to the largest value that an offer can hold."""
        return min(int(self.period_days * 86_400), 2**32 - 1)

    def least_seat_fee(self, stake: int, gas_price: int) -> SeatFee:
        """The cost of a seat with these settings, for an account with a stake of `stake` token units.
        `gas_price` is wei per gas.
        """
        rate, coin = Fraction(self.capital_rate), Fraction(self.coin_price)
        return seat_fee(stake, self.period, capital_rate=rate, gas_price=gas_price, coin_price=coin)

    def speed_of_seats(self, seats: Standing, accounts: int) -> float:
        """The limit on the operations a second that the seats of one account may need. This is `seat_speed`.
        If that is unset, it is the highest limit at which the machine finishes the work of all accounts in
        time. `accounts` is the number of accounts.
        """
        if self.seat_speed is not None:
            return self.seat_speed
        return most_operations(seats, accounts + self.whistleblow, Rates(self.speed))

    def offer(self, stake: int, least_fee: int, speed: float) -> Offer:
        """The offer of an account with a stake of `stake` token units. It refuses seats that pay less than
        `least_fee` token units, or need more than `speed` operations a second.
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
