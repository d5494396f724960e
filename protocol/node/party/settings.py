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
"""Seconds between two looks at most."""


WebUrl = Annotated[str, AfterValidator(require_web_url)]
"""http or https, with a host."""


def _webhook(given: SecretStr | None) -> SecretStr | None:
    from protocol.node.monitoring.webhook import Webhook  # an HTTP client is not part of most commands

    if given is not None:
        Webhook.parse(given.get_secret_value())
    return given


class ConnectionSettings(BaseModel):
    """Where the chain and the contracts are, and who sends. `account` is a name under the home folder or dev:<index>;
    each command has its own default.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    rpc: Annotated[
        tuple[WebUrl, ...],
        Field(min_length=1),
        BeforeValidator(lambda given: given.split(",") if isinstance(given, str) else given),
    ] = ("http://127.0.0.1:8545",)
    """Nodes of the chain: if one fails or lags, the next is asked; a transaction goes to all. Separated by commas in
    a flag.
    """
    finality: Finality | None = None
    """Finality that irreversible actions wait for; if unset, the chain's own in protocol/chain/chains.toml."""
    account: str
    password_file: Path | None = None
    deployment: Path | None = None
    bundles: tuple[str, ...] = ()
    """Addresses below which bundles may be read, and nodes asked, in addition to https and http on the internet, such
    as file:///srv/bundles/ or http://192.168.1.5:8700/.
    """
    relays: tuple[Relay, ...] = ()
    """HTTP relays of the beacon, all asked at once; empty: those that protocol/beacon/networks.toml names for the
    deployment's network.
    """


class NodeSettings(ConnectionSettings):
    """Options of a long-running node."""

    poll: Annotated[float, Field(gt=0, le=LONGEST)] | None = None
    """Seconds between two looks at the chain; if unset, half a second while there is work, and the time of a block
    while there is none.
    """
    patience: Annotated[float, Field(gt=0)] = 300.0
    """Seconds that the chain's node may be out of reach before this node gives up."""
    speed: Annotated[float, Field(gt=0)] = SPEED
    """Scalar operations a second that this machine manages; the node enters no task or game that needs more. A solver
    without this setting uses what `solver bench` measured, also for its price.
    """
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where steps run; auto: on a CUDA device if torch has one. The bits are the same."""
    tasks: tuple[Annotated[int, Field(ge=1)], ...] = ()
    """Tasks to work on; empty: all."""
    disk_limit_gib: Annotated[float, Field(gt=0, le=10**6)] | None = None
    """Disk that this node may take, in GiB; if unset, all that is free. Data of finished tasks is deleted first, the
    oldest first, even before `hold_days` are over. Data at stake is always kept; where it exceeds the limit, nothing
    new is taken.
    """
    hold_days: Annotated[float, Field(ge=0, le=10**4)] = 7
    """How long a task's data stays on disk, and is served, after the task was over."""

    @property
    def disk_limit(self) -> int | None:
        """`disk_limit_gib` in bytes."""
        return None if self.disk_limit_gib is None else int(self.disk_limit_gib * 2**30)

    @property
    def hold_seconds(self) -> int:
        """`hold_days` in seconds."""
        return int(self.hold_days * 86_400)

    MONITOR_PORT: ClassVar[int]
    """The default port of the party's monitoring."""
    port: Annotated[int, Field(ge=0, le=65_535)] = 0
    """Port of the service for strangers; 0: any free one."""
    monitor_host: str = "127.0.0.1"
    """Host of /healthz, /readyz and /metrics, which are not for strangers."""
    monitor_port: Annotated[int, Field(ge=0, le=65_535)] | None = None
    """Port of monitoring; 0: any free one. If unset: the party's own, or any free one where `port` is 0."""
    webhook: Annotated[
        SecretStr | None, AfterValidator(_webhook), Field(json_schema_extra={"secret": True})
    ] = None
    """Address that alerts are posted to as JSON: https, or http on this machine."""
    deadline_minutes: Annotated[float, Field(gt=0, le=10**6)] = 60
    """Minutes before a deadline for its alert; a fifth of its period if that is less."""
    silent_minutes: Annotated[float, Field(gt=0, le=10**7)] | None = None
    """Minutes without progress of a task in training for its alert; if unset, a third of its training period."""
    low_disk_gib: Annotated[float, Field(ge=0, le=10**6)] = 5
    """Free disk in GiB below which an alert is raised and the node is not ready; a tenth of the disk if that
    is less.
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
