"""The deployment file, `deployments/<chain id>.json` under ASSAY_HOME, which says where the contracts of a
chain are. Files of earlier deployments on the same chain are kept next to it, as `<chain
id>-<anything>.json`.
"""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Final, Literal

from eth_utils.address import is_checksum_address, to_checksum_address
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from protocol.beacon.rounds import Network
from protocol.chain.connection import Connection
from protocol.chain.errors import DeploymentError
from protocol.chain.parameter_bounds import broken_bound
from protocol.chain.parameters import Parameters
from protocol.commitments.atomic import write_atomically
from protocol.node.documents import parse_json
from protocol.node.format_versions import only
from protocol.node.home import Home

VERSION: Final = 7
MAX_BYTES: Final = 1 << 16
MAX_SALT: Final = 64
"""Maximum number of characters in a salt."""


def _checksummed(address: str) -> str:
    digits = address[2:]
    if digits not in (digits.lower(), digits.upper()) and not is_checksum_address(address):
        raise ValueError("an address with a wrong checksum (EIP-55)")
    return to_checksum_address(address)


def _within_bounds(parameters: Parameters) -> Parameters:
    if (bound := broken_bound(parameters)) is not None:
        raise ValueError(f"{bound.field} must be {bound.least} to {bound.most}")
    return parameters


Address = Annotated[str, Field(pattern=r"^0x[0-9a-fA-F]{40}$"), AfterValidator(_checksummed)]
"""The address of a contract or of an account. Parsing adds the checksum (EIP-55), and refuses a wrong one.
"""
_Hash = Annotated[str, Field(pattern=r"^0x[0-9a-f]{64}$")]


class Addresses(BaseModel):
    """Addresses of the contracts, with checksums."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    token: Address
    vault: Address
    market: Address
    audit: Address
    commitments: Address
    looks: Address
    juries: Address
    game: Address
    arbiter: Address
    bounds: Address
    beacon: Address


class Deployment(BaseModel):
    """The facts that a party needs to take part. `block` is before the vault's initialisation, so before all
    events (protocol.chain.initialisation). The addresses follow from `deployer`, `salt`, the token, the
    parameters, the beacon network and `arithmetic` (protocol.chain.plan).
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    format: Literal["assay-deployment"] = "assay-deployment"
    version: Annotated[int, only(VERSION)] = VERSION
    chain_id: Annotated[int, Field(ge=1, lt=1 << 64)]
    genesis: _Hash
    block: Annotated[int, Field(ge=0, lt=1 << 63)]
    deployer: Address
    salt: Annotated[str, Field(max_length=MAX_SALT)]
    addresses: Addresses
    parameters: Annotated[Parameters, AfterValidator(_within_bounds)]
    beacon: Network
    arithmetic: Annotated[int, Field(ge=1, le=65_535)]


def deployment_file(chain_id: int) -> Path:
    """Path of a chain's deployment file."""
    return Home.find().deployment(chain_id)


def kept_file(deployment: Deployment) -> Path:
    """Path where a deployment's file is kept once a later one on the same chain has replaced it."""
    return _beside(deployment_file(deployment.chain_id), deployment.addresses.market[2:10].lower())


def deployments_of(chain_id: int, genesis: str) -> list[Deployment]:
    """All deployments of this chain that have a file under the home folder: the current one and the earlier
    ones. Unreadable files are left out.
    """
    path, found = deployment_file(chain_id), dict[str, Deployment]()
    for file in (path, *sorted(path.parent.glob(f"{chain_id}-*.json"))):
        with suppress(DeploymentError):
            deployment = load_deployment(file)
            if deployment.genesis == genesis:
                found.setdefault(deployment.addresses.market, deployment)
    return list(found.values())


def earlier_deployment(chain_id: int, genesis: str) -> Deployment | None:
    """The deployment whose file a new deployment on this chain would replace; None if there is none, or
    if the file cannot be read.
    """
    try:
        found = load_deployment(chain_id)
    except DeploymentError:
        return None
    return found if found.genesis == genesis else None


def copy_to_keep(deployment: Deployment) -> Path | None:
    """The path to which to copy the file that this deployment will replace; None if nothing would be lost.

    A file is worth a copy if it describes other contracts on the same chain, which may hold stakes, or if
    this version cannot parse it. Raises DeploymentError if the file exists but cannot be opened.
    """
    path = deployment_file(deployment.chain_id)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DeploymentError(
            f"earlier deployment {path}",
            expected="a readable file, to keep a copy of",
            got=type(error).__name__,
            remedy="move it away",
        ) from error
    try:
        earlier = load_deployment(path)
    except DeploymentError:
        return _beside(path, sha256(data).hexdigest()[:8])
    if earlier.genesis != deployment.genesis or earlier.addresses == deployment.addresses:
        return None
    return kept_file(earlier)


def save_deployment(deployment: Deployment) -> Path:
    """Write the deployment file, whole or not at all. A file that it replaces is first copied if needed
    (`copy_to_keep`).
    """
    path = deployment_file(deployment.chain_id)
    copy = copy_to_keep(deployment)
    if copy is not None:
        write_atomically(copy, path.read_bytes())
    write_atomically(path, (deployment.model_dump_json(indent=2) + "\n").encode())
    return path


def require_salt(salt: str) -> None:
    """Raises DeploymentError for a salt that a deployment file cannot hold."""
    if len(salt) > MAX_SALT or any("\ud800" <= character <= "\udfff" for character in salt):
        raise DeploymentError(
            "salt of a deployment",
            expected=f"text of at most {MAX_SALT} characters",
            got=f"{len(salt)} characters" if len(salt) > MAX_SALT else "bytes that are not text in UTF-8",
            remedy="choose another --salt",
        )


def load_deployment(source: int | Path) -> Deployment:
    """The deployment in the file of a chain id, or in a given file. Raises DeploymentError."""
    path = deployment_file(source) if isinstance(source, int) else source
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DeploymentError(
            "deployment",
            expected=f"a file at {path}",
            got=type(error).__name__,
            remedy="run `assay deploy`, or copy the file from the deployer",
        ) from error
    if len(data) > MAX_BYTES:
        raise DeploymentError(
            f"deployment {path}",
            expected=f"at most {MAX_BYTES} bytes",
            got=len(data),
            remedy="this is not a deployment file",
        )
    try:
        return Deployment.model_validate_json(data)
    except ValidationError as error:
        version = _version_in(data)
        if version is not None and version > VERSION:
            raise DeploymentError(
                f"deployment {path}",
                expected=f"an assay-deployment of version {VERSION}, which this release knows",
                got=f"version {version}, of a later release",
                remedy="upgrade: install the release that these contracts were deployed with, or a later one",
            ) from error
        raise DeploymentError(
            f"deployment {path}",
            expected=f"an assay-deployment of version {VERSION}",
            got=first_fault(error),
            remedy="write it again with `assay deploy`",
        ) from error


def _version_in(data: bytes) -> int | None:
    """The version that a deployment file names, even if its other fields are invalid. None if the file names
    no version, is not JSON, or its `format` is not that of a deployment file.
    """
    try:
        found = parse_json(data)
    except ValueError:
        return None
    version = found.get("version") if isinstance(found, dict) else None
    return version if isinstance(version, int) and found.get("format") == "assay-deployment" else None


def first_fault(error: ValidationError) -> str:
    """Field and reason of the first problem in a file."""
    first = error.errors(include_url=False)[0]
    where = ".".join(map(str, first["loc"])) or "the document"
    return f"{where}: {first['msg']}"


def _beside(path: Path, name: str) -> Path:
    return path.with_name(f"{path.stem}-{name}.json")


def require_alive(deployment: Deployment, connection: Connection) -> None:
    """Raises DeploymentError unless the node's chain has the genesis that the deployment names, and there is
    code at the address of the deployment's market. An earlier development chain, for example, had another
    genesis.
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
