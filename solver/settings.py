"""Settings of `solver run`. Each comes from the first source that sets it: a flag, an ASSAY_* variable, the
[solver] table of config.toml, or the default here.

Amounts are in tokens; they are converted to token units when passed to the chain. Importing this module
loads pydantic, so the command line imports it only in commands that need it.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from ipaddress import IPv4Address, IPv6Address
from typing import Annotated, ClassVar, Final, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from protocol.chain.parameters import TOKEN
from protocol.node.party.followed import QUARTERS
from protocol.node.party.settings import Host, NodeSettings, WebUrl
from protocol.tasks import usual_solver
from protocol.tasks.admission import Clocks, Rates
from protocol.tasks.bidding import OPENING
from protocol.tasks.floor import Costs
from protocol.tasks.offers import Figures
from protocol.tasks.owed import Traces
from protocol.tasks.task import Terms

COIN: Final = 10**18
"""Wei of one coin."""
Tokens = Annotated[Decimal, Field(ge=0, le=10**15)]


def _plain(place: str) -> str:
    """Check that an fsspec URL names a single file system and has no credentials. Credentials come from the
    environment, because settings are shown.
    """
    if (
        "://" not in place
        or not place.isprintable()
        or any(sign in place for sign in ("@", "?", "#", "..", "::"))
    ):
        raise ValueError(
            "expected an address such as s3://bucket/prefix, without '@', '?', '#', '..' and '::'"
        )
    return place


PublishUrl = Annotated[str, AfterValidator(_plain)]


class SolverSettings(NodeSettings):
    """The operator's options. `url` is the public address of the HTTP service, if it differs from the address
    it listens on.
    """

    MONITOR_PORT: ClassVar[int] = 8711

    account: str = "dev:1"
    stake: Tokens = usual_solver.STAKE
    """Tokens to deposit in the vault for stakes."""
    host: Host = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 8701
    url: WebUrl | None = None
    publish: PublishUrl | None = None
    """An fsspec URL such as s3://mine/assay. Bundles and committed checkpoints are also written below it.
    `url` is then the address where these files can be read, and this server need not be reachable.
    """
    proxies: tuple[IPv4Address | IPv6Address, ...] = ()
    """Addresses of proxies in front of this server. Connections from them count as connections of many clients."""
    min_eligible: Annotated[int, Field(ge=1)] | None = None
    """A task is bid on only if at least this many registered accounts are eligible for it. If unset, this is
    three times the number of seats and jurors. On a development chain, it is the number of seats and jurors.
    """
    min_share: Annotated[float, Field(ge=0, le=1)] | None = None
    """A task is bid on only if accounts with at least this share of the registered stake have offers that
    accept the task. If unset: one half, or none on a development chain. Without this limit, a submitter could
    write terms that only its own accounts accept.
    """
    uplink_mbit: Annotated[float, Field(gt=0, le=10**9)] = usual_solver.UPLINK_MBIT
    """Upload speed in megabits a second. A task is refused if its states could not be served to all seats, or
    to a whole jury, within half of the attestation period.
    """
    progress_every: Annotated[int, Field(ge=0)] = 0
    """Segments between two progress transactions; 0: a quarter of the task's segments."""
    devices: Annotated[
        tuple[Annotated[int, Field(ge=0, le=255)], ...],
        BeforeValidator(lambda given: given.split(",") if isinstance(given, str) else given),
    ] = ()
    """Numbers of the CUDA devices that train; if there are none, `device` trains. In a flag, the numbers are
    separated by commas.
    """
    processes: Annotated[int, Field(ge=1, le=64)] = 1
    """Processes that train a task together, if it has micro-batches to share. At most one process per
    micro-batch.
    """
    cost_per_hour: Tokens = usual_solver.COST_PER_HOUR
    """Cost of the machine in tokens per hour of training, not counting electricity."""
    watts: Annotated[float, Field(ge=0, le=10**9)] = usual_solver.WATTS
    """Watts that the machine draws while it trains. If this is unset and steps run on n GPUs, it becomes the
    sum of the n highest power limits that the machine's GPUs report (`gpu.powered`). If fewer than n GPUs
    report a limit, the log says how many are not counted. If none does, the default stays.
    """
    kwh_price: Tokens = usual_solver.KWH_PRICE
    capital_rate: Annotated[float, Field(ge=0, le=10)] = usual_solver.CAPITAL_RATE
    """Yearly cost of a locked token, as a fraction."""
    late_chance: Annotated[float, Field(ge=0, lt=1)] = usual_solver.LATE_CHANCE
    """Chance of missing a task's deadline."""
    coin_price: Tokens = Decimal(3000)
    """Price, in tokens, of one of the chain's coins. Gas is paid in coins."""
    margin: Annotated[float, Field(ge=0, le=100)] = usual_solver.MARGIN
    """Profit as a fraction of all costs of a task, added to these costs."""
    opening: Annotated[float, Field(gt=0, le=1)] = float(OPENING)
    """Share of the budget that a first bid asks for."""

    @model_validator(mode="after")
    def _is_read_somewhere(self) -> Self:
        if self.publish is not None and self.url is None:
            raise ValueError("with `publish`, expected `url`: the address that what is published is read at")
        return self

    @model_validator(mode="after")
    def _has_these_devices(self) -> Self:
        if self.devices and self.device == "cpu":
            raise ValueError("`devices` are numbers of CUDA devices: expected no `device = cpu` beside them")
        if len(set(self.devices)) < len(self.devices):
            raise ValueError("expected each number of `devices` once")
        return self

    @property
    def training_devices(self) -> tuple[str, ...]:
        """Names of the devices that train: `cuda:<number>` for each of `devices`, or `device` if that is empty."""
        return tuple(f"cuda:{number}" for number in self.devices) or (self.device,)

    def with_gpus(self, watts: float | None) -> Self:
        """These settings for steps that run on GPUs. `watts` is the most that the GPUs may draw, None if they
        do not report it. If the operator has set `watts`, that value stays.
        """
        said = watts is None or "watts" in self.model_fields_set
        return self if said else self.model_copy(update={"watts": watts})

    @property
    def stake_units(self) -> int:
        """The stake in token units."""
        return int(self.stake * TOKEN)

    def costs(self, gas_price: int) -> Costs:
        """The costs of tasks on this machine; `gas_price` is wei per gas."""
        return Costs.of(
            cost_per_hour=self.cost_per_hour,
            watts=self.watts,
            kwh_price=self.kwh_price,
            capital=self.capital_rate,
            late=self.late_chance,
            gas=Fraction(gas_price) * Fraction(self.coin_price) * TOKEN / COIN,
            margin=self.margin,
        )

    def figures(
        self,
        free: int,
        disk: int,
        clocks: Clocks,
        rates: Rates,
        draw_delay: float,
        gas_price: int,
        taken: Mapping[str, Terms],
        traces: Mapping[bytes, Traces],
    ) -> Figures:
        """The bidder's figures. `free` is in token units, `disk` in bytes, `gas_price` in wei. `taken` has
        the terms of the bidder's tasks, and of those that it may still win. `traces` has the traces of known
        programs, by program id. The free memory of devices is not included.
        """
        return Figures(
            free,
            rates,
            self.costs(gas_price),
            self.opening,
            disk,
            clocks,
            draw_delay,
            taken,
            self.uplink_mbit * usual_solver.MEGABIT,
            traces=traces,
        )

    def segments_between(self, terms: Terms) -> int:
        """Segments between two progress transactions of a task."""
        return self.progress_every or max(1, terms.segments // QUARTERS)
