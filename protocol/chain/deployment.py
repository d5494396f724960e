"""The deployment file: where the contracts of a chain are. One per chain, `deployments/<chain id>.json` under
ASSAY_HOME.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from protocol.chain.connection import Connection
from protocol.chain.errors import DeploymentError
from protocol.chain.parameters import Parameters
from protocol.commitments.atomic import write_atomically
from protocol.node.home import Home

VERSION: Final = 2
MAX_BYTES: Final = 1 << 16

_Address = Annotated[str, Field(pattern=r"^0x[0-9a-fA-F]{40}$")]
_Hash = Annotated[str, Field(pattern=r"^0x[0-9a-f]{64}$")]


class Addresses(BaseModel):
    """Addresses of the contracts, checksummed."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    token: _Address
    vault: _Address
    market: _Address
    audit: _Address
    game: _Address
    arbiter: _Address


class Deployment(BaseModel):
    """What a party has to know to take part. `block` is one in which the vault was not there yet: events begin
    after it. The addresses follow from `deployer`, `salt`, the token and the parameters (protocol.chain.plan).
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    format: Literal["assay-deployment"] = "assay-deployment"
    version: Literal[2] = VERSION
    chain_id: Annotated[int, Field(ge=1)]
    genesis: _Hash
    block: Annotated[int, Field(ge=0)]
    deployer: _Address
    salt: Annotated[str, Field(max_length=64)]
    addresses: Addresses
    parameters: Parameters
    arithmetic: Annotated[int, Field(ge=1, le=65_535)]


def deployment_file(chain_id: int) -> Path:
    """Where the deployment of a chain is written and looked for."""
    return Home.find().deployment(chain_id)


def kept_file(deployment: Deployment) -> Path:
    """Where the file of a deployment goes when a later one on the same chain takes its place."""
    path = deployment_file(deployment.chain_id)
    return path.with_name(f"{path.stem}-{deployment.addresses.market[2:10].lower()}.json")


def earlier_deployment(chain_id: int, genesis: str) -> Deployment | None:
    """The deployment whose file a new one on this very chain would take the place of; None without one."""
    try:
        found = load_deployment(chain_id)
    except DeploymentError:
        return None
    return found if found.genesis == genesis else None


def save_deployment(deployment: Deployment) -> Path:
    """Write the file, whole or not at all. That of other contracts on the same chain, which may hold stakes,
    is kept beside it.
    """
    path = deployment_file(deployment.chain_id)
    earlier = earlier_deployment(deployment.chain_id, deployment.genesis)
    if earlier is not None and earlier.addresses != deployment.addresses:
        write_atomically(kept_file(earlier), path.read_bytes())
    write_atomically(path, (deployment.model_dump_json(indent=2) + "\n").encode())
    return path


def load_deployment(source: int | Path) -> Deployment:
    """The deployment of a chain id, or in a file. Raises DeploymentError."""
    path = deployment_file(source) if isinstance(source, int) else source
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DeploymentError(
            "deployment",
            expected=f"a file at {path}",
            got=type(error).__name__,
            remedy="run `assay deploy`, or copy the file from whoever deployed",
        ) from error
    if len(data) > MAX_BYTES:
        raise DeploymentError(
            f"deployment {path}",
            expected=f"at most {MAX_BYTES} bytes",
            got=len(data),
            remedy="this is no deployment file",
        )
    try:
        return Deployment.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the document"
        raise DeploymentError(
            f"deployment {path}",
            expected=f"an assay-deployment of version {VERSION}",
            got=f"{where}: {first['msg']}",
            remedy="write it anew with `assay deploy`",
        ) from error


def require_alive(deployment: Deployment, connection: Connection) -> None:
    """Raises DeploymentError if the node's chain is not the one that was deployed to, such as an earlier
    development chain.
    """
    alive = connection.genesis == deployment.genesis and connection.code(deployment.addresses.market)
    if not alive:
        raise DeploymentError(
            f"deployment on chain {deployment.chain_id}",
            expected=f"contracts on the chain with genesis {deployment.genesis}",
            got=f"genesis {connection.genesis}"
            if connection.genesis != deployment.genesis
            else f"no code at {deployment.addresses.market}",
            remedy="this file is of another chain with the same id: run `assay deploy` again",
        )
