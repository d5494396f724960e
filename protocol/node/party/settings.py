"""Settings that several commands share: how to reach the chain, and how a node runs. Importing this loads pydantic."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr

from protocol.beacon.networks import Relay
from protocol.chain.chains import Finality
from protocol.node.addresses import require_web_url
from protocol.tasks.usual_solver import PACE as PACE
from protocol.tasks.usual_solver import SPEED

LONGEST: Final = 60.0
"""Maximum seconds between two looks at the chain."""


Host = Annotated[str, Field(min_length=1)]
"""An address to listen on. An empty one is refused, because a socket takes it for all addresses."""
WebUrl = Annotated[str, AfterValidator(require_web_url)]
"""An http or https URL with a host."""


def _webhook(given: SecretStr | None) -> SecretStr | None:
    from protocol.node.monitoring.webhook import Webhook  # most commands need no HTTP client

    if given is not None:
        Webhook.parse(given.get_secret_value())
    return given


class ConnectionSettings(BaseModel):
    """How to reach the chain and the contracts, and which account sends. `account` is a name under the home
    folder or dev:<index>; each command has its own default.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    rpc: Annotated[
        tuple[WebUrl, ...],
        Field(min_length=1),
        BeforeValidator(lambda given: given.split(",") if isinstance(given, str) else given),
    ] = ("http://127.0.0.1:8545",)
    """URLs of nodes of the chain, separated by commas in a flag. If a node fails or lags, the next is asked;
    a transaction is sent to all.
    """
    finality: Finality | None = None
    """When a block counts as final, for irreversible actions; if unset, as in protocol/chain/chains.toml."""
    account: str
    password_file: Path | None = None
    deployment: Path | None = None
    bundles: tuple[str, ...] = ()
    """Addresses below which bundles may be read and nodes may be asked. All https addresses, and http
    addresses on the internet, are always allowed. Examples: file:///srv/bundles/ and
    http://192.168.1.5:8700/.
    """
    relays: tuple[Relay, ...] = ()
    """HTTP relays of the beacon, which are all asked at once. If empty, those in
    protocol/beacon/networks.toml for the deployment's network.
    """


class NodeSettings(ConnectionSettings):
    """Settings of a long-running node."""

    poll: Annotated[float, Field(gt=0, le=LONGEST)] | None = None
    """Seconds between two looks at the chain. If unset, half a second while there is work, and otherwise one
    block time.
    """
    patience: Annotated[float, Field(gt=0)] = 300.0
    """Seconds that the chain's node may be out of reach before this node gives up."""
    speed: Annotated[float, Field(gt=0, allow_inf_nan=False)] = SPEED
    """Scalar operations per second that this machine manages; the node enters no task or game that needs
    more. If this is unset, a solver uses the speed that `solver bench` measured, and uses it for its price as
    well.
    """
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where steps run; auto means a CUDA device if torch has one. The bits are the same everywhere."""
    tasks: tuple[Annotated[int, Field(ge=1, lt=2**63)], ...] = ()
    """Tasks to work on; empty: all."""
    disk_limit_gib: Annotated[float, Field(gt=0, le=10**6)] | None = None
    """Disk space that this node may take, in GiB; if unset, all that is free. If needed, data of finished
    tasks is deleted, the oldest first, even before `hold_days` are over. Data at stake is always kept; if it
    exceeds the limit, no new task is taken.
    """
    hold_days: Annotated[float, Field(ge=0, le=10**4)] = 7
    """Days for which a task's data stays on disk and is served after the task is over."""

    @property
    def disk_limit(self) -> int | None:
        """`disk_limit_gib` in bytes."""
        return None if self.disk_limit_gib is None else int(self.disk_limit_gib * 2**30)

    @property
    def hold_seconds(self) -> int:
        """`hold_days` in seconds."""
        return int(self.hold_days * 86_400)

    MONITOR_PORT: ClassVar[int]
    """The party's default port for monitoring."""
    port: Annotated[int, Field(ge=0, le=65_535)] = 0
    """Port of the service for strangers; 0: any free one."""
    monitor_host: Host = "127.0.0.1"
    """Host of /healthz, /readyz and /metrics, which are not for strangers."""
    monitor_port: Annotated[int, Field(ge=0, le=65_535)] | None = None
    """Port of monitoring; 0: any free one. If unset: the party's default port, or any free one if `port` is 0."""
    webhook: Annotated[
        SecretStr | None, AfterValidator(_webhook), Field(json_schema_extra={"secret": True})
    ] = None
    """Address that alerts are posted to as JSON: https, or http on this machine."""
    deadline_minutes: Annotated[float, Field(gt=0, le=10**6)] = 60
    """An alert is raised this many minutes before a deadline, or when a fifth of the deadline's period is
    left, if that is later.
    """
    silent_minutes: Annotated[float, Field(gt=0, le=10**7)] | None = None
    """How many minutes a task in training may be without progress before an alert is raised; if unset, a
    third of its training period, and longer for a task with fewer than four segments.
    """
    low_disk_gib: Annotated[float, Field(ge=0, le=10**6)] = 5
    """If less than this many GiB of the disk are free, an alert is raised and the node is not ready. On a
    small disk the limit is a tenth of the disk, if that is less.
    """

    @property
    def monitor_port_bound(self) -> int:
        """The port that monitoring listens on; 0: any free one."""
        own = self.MONITOR_PORT if self.port else 0
        return own if self.monitor_port is None else self.monitor_port

    @property
    def pace(self) -> float:
        """Seconds between two looks while there is something to do."""
        return PACE if self.poll is None else self.poll
