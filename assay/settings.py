"""Settings of the `assay` commands. Each comes from the first source that sets it: a flag, the variable
ASSAY_<NAME>, the table [assay] of config.toml, or the defaults here.

Importing this module loads pydantic, so the command line imports it only when a command runs.
"""

from __future__ import annotations

from decimal import Decimal
from ipaddress import IPv4Address, IPv6Address
from typing import Annotated, Literal

from pydantic import Field

from protocol.node.http import url_of
from protocol.node.party.settings import ConnectionSettings, Host, WebUrl


class AssaySettings(ConnectionSettings):
    """The settings of all `assay` commands; each command uses some of them."""

    account: str = "dev:0"
    host: Host = "127.0.0.1"
    """Address on which `assay serve` and `assay beacon` listen."""
    port: Annotated[int, Field(ge=0, le=65_535)] = 8700
    beacon_port: Annotated[int, Field(ge=0, le=65_535)] = 8702
    """Port of the beacon. `assay beacon` serves it on `host`; the beacon of `assay devnet` is reachable from
    this machine only.
    """
    proxies: tuple[IPv4Address | IPv6Address, ...] = ()
    """IP addresses of proxies in front of this server. Limits for a single client do not apply to their
    connections, because these come from many clients.
    """
    min_eligible: Annotated[int, Field(ge=1)] | None = None
    """Number of registered accounts that must be eligible for a task before it is posted. If empty, three
    accounts are needed for each seat and each juror; on a development chain, one account for each. An account
    has one seat at a time.
    """
    patience: Annotated[float, Field(gt=0, le=10**7)] = 3600.0
    """Maximum seconds that `assay submit --wait` waits for enough eligible accounts."""
    gas_price: Annotated[Decimal, Field(ge=0, le=10**9)] | None = None
    """Gas price, in gwei, from which a task's amounts are derived. Empty: twice the chain's present price,
    rounded up to one digit, but at least the price assumed for a rollup.
    """
    coin_price: Annotated[Decimal, Field(ge=0, le=10**15)] | None = None
    """Price, in tokens, of one coin of the chain, in which gas is paid. Empty: the assumed price."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where `assay verify` replays; auto: on a CUDA device if torch has one. Every device gives the same
    bits.
    """
    bundles_url: WebUrl | None = None
    """Public address of the bundle server, if it is not http://<host>:<port>."""

    @property
    def bundle_base(self) -> str:
        """Address below which /bundles/<hash>/ is found."""
        return (self.bundles_url or url_of(self.host, self.port)).rstrip("/")
