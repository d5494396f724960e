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
    """Nodes of the chain: the next one is asked when one fails or is behind; a transaction goes to all. In a flag
    between commas.
    """
    finality: Finality | None = None
    """What cannot be undone waits for it; without, the chain's own of protocol/chain/chains.toml."""
    account: str
    password_file: Path | None = None
    deployment: Path | None = None
    bundles: tuple[str, ...] = ()
    """Addresses below which bundles may be read, and nodes asked, besides https and http on the internet, such as
    file:///srv/bundles/ or http://192.168.1.5:8700/.
    """
    relays: tuple[Relay, ...] = ()
    """HTTP relays of the beacon, all asked at once; empty: those that protocol/beacon/networks.toml names for the
    deployment's network.
    """


class NodeSettings(ConnectionSettings):
    """What the operator of a long-running node may choose."""

    poll: Annotated[float, Field(gt=0, le=LONGEST)] | None = None
    """Seconds between two looks at the chain; without, half a second while there is something to do, and the time of a
    block while there is nothing.
    """
    patience: Annotated[float, Field(gt=0)] = 300.0
    """Seconds that the chain's node may be out of reach before this one gives up."""
    speed: Annotated[float, Field(gt=0)] = SPEED
    """Scalar operations a second that this machine manages, to enter no task or game whose clock is too short. A solver
    for which it is not set goes by what `solver bench` measured, for its price too.
    """
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where steps run; auto: on a CUDA device if torch has one. The bits are the same."""
    tasks: tuple[Annotated[int, Field(ge=1)], ...] = ()
    """Tasks to work on; empty: all."""
    disk_limit_gib: Annotated[float, Field(gt=0, le=10**6)] | None = None
    """Of disk that this node may take, in GiB; without, all that is free. What is kept of tasks that are over goes
    first, the earliest first, before `hold_days` are over; what is at stake is kept all the same, and where that is
    more, nothing new is taken.
    """
    hold_days: Annotated[float, Field(ge=0, le=10**4)] = 7
    """How long what is kept of a task stays on the disk, and is served, after the task was over."""

    @property
    def disk_limit(self) -> int | None:
        """`disk_limit_gib` in bytes."""
        return None if self.disk_limit_gib is None else int(self.disk_limit_gib * 2**30)

    @property
    def hold_seconds(self) -> int:
        """`hold_days` in seconds."""
        return int(self.hold_days * 86_400)

    MONITOR_PORT: ClassVar[int]
    """Where the party's monitoring listens unless the settings say."""
    port: Annotated[int, Field(ge=0, le=65_535)] = 0
    """Of the service for strangers; 0: any free one."""
    monitor_host: str = "127.0.0.1"
    """Where /healthz, /readyz and /metrics are served, which are not for strangers."""
    monitor_port: Annotated[int, Field(ge=0, le=65_535)] | None = None
    """0: any free one. Unsaid: the party's own, or any free one where `port` is 0."""
    webhook: Annotated[
        SecretStr | None, AfterValidator(_webhook), Field(json_schema_extra={"secret": True})
    ] = None
    """Address that alerts are posted to as JSON: https, or http on this machine."""
    deadline_minutes: Annotated[float, Field(gt=0, le=10**6)] = 60
    """Before a deadline for its alert; a fifth of its period where that is less."""
    silent_minutes: Annotated[float, Field(gt=0, le=10**7)] | None = None
    """Without progress of a task in training for its alert; unsaid, a third of its training period."""
    low_disk_gib: Annotated[float, Field(ge=0, le=10**6)] = 5
    """Of free disk for the alert and for not being ready; a tenth of the disk where that is less."""

    @property
    def monitor_port_bound(self) -> int:
        """The port that monitoring listens on; 0: any free one."""
        own = self.MONITOR_PORT if self.port else 0
        return own if self.monitor_port is None else self.monitor_port

    @property
    def pace(self) -> float:
        """Seconds between two looks while there is something to do."""
        return PACE if self.poll is None else self.poll
