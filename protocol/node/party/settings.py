"""Settings that several commands share: how to reach the chain, and how a node runs. Importing this loads pydantic."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from protocol.beacon.networks import Relay
from protocol.chain.chains import Finality

PACE: Final = 0.5
"""Seconds."""
LONGEST: Final = 60.0
"""Seconds between two looks at most."""


class ConnectionSettings(BaseModel):
    """Where the chain and the contracts are, and who sends. `account` is a name under the home folder or dev:<index>;
    each command has its own default.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    rpc: Annotated[
        tuple[str, ...],
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
    speed: Annotated[float, Field(gt=0)] = 2e9
    """Scalar operations a second that this machine manages, to enter no task or game whose clock is too short. A solver
    for which it is not set goes by what `solver bench` measured, for its price too.
    """
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where steps run; auto: on a CUDA device if torch has one. The bits are the same."""
    tasks: tuple[Annotated[int, Field(ge=1)], ...] = ()
    """Tasks to work on; empty: all."""

    @property
    def pace(self) -> float:
        """Seconds between two looks while there is something to do."""
        return PACE if self.poll is None else self.poll
