"""The beacon networks that the package knows (`networks.toml`), and those in an operator's own files."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field, ValidationError

from protocol.beacon.errors import NetworkError
from protocol.beacon.rounds import Network
from protocol.node.addresses import Address, BadAddress

TABLE: Final = Path(__file__).with_name("networks.toml")
MAX_BYTES: Final = 1 << 16


def _an_address(text: str) -> str:
    try:
        Address.parse(text)
    except BadAddress as error:
        raise ValueError(str(error)) from error
    return text


Relay = Annotated[str, AfterValidator(_an_address)]
"""Address of an HTTP server with drand's API, http or https."""


class _Entry(Network):
    """A network with its default relays."""

    relays: Annotated[tuple[Relay, ...], Field(strict=False)] = ()


def load_network(source: str) -> Network:
    """Load a network. `source` is a name in the package's table, or the path of a TOML file with a table
    [network]. Raises NetworkError.
    """
    return Network.model_validate(_entry(source).model_dump(exclude={"relays"}))


def default_relays(network: Network) -> tuple[str, ...]:
    """The relays that the package's table lists for a network; empty if the network is not in the table."""
    for name in _read(TABLE):
        entry = _entry(name)
        if entry.chain_hash == network.chain_hash:
            return entry.relays
    return ()


def _entry(source: str) -> _Entry:
    known = _read(TABLE)
    table = known[source] if source in known else _own(source, known)
    try:
        return _Entry.model_validate(table)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise NetworkError(
            f"beacon network {source}",
            expected=", ".join(_Entry.model_fields),
            got=f"{'.'.join(map(str, first['loc']))}: {first['msg']}",
            remedy="correct the file; protocol/beacon/networks.toml shows the form",
        ) from error


def _own(source: str, known: dict[str, Any]) -> Any:
    """Read the table [network] of an operator's file."""
    file = Path(source)
    if not file.is_file():
        raise NetworkError(
            f"beacon network {source!r}",
            expected=f"{', '.join(known)}, or a readable TOML file",
            got="neither",
            remedy="name one of them",
        )
    table = _read(file).get("network")
    if not isinstance(table, dict):
        raise NetworkError(
            f"beacon network {file}", expected="a table [network]", got="none", remedy="add it"
        )
    return table


def _read(file: Path) -> dict[str, Any]:
    try:
        data = file.read_bytes()
        if len(data) > MAX_BYTES:
            raise NetworkError(f"beacon network {file}", expected=f"at most {MAX_BYTES} bytes", got=len(data))
        return tomllib.loads(data.decode())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise NetworkError(
            f"beacon network {file}", expected="TOML", got=error, remedy="correct or remove it"
        ) from error


DEVELOPMENT: Final = load_network("development")
"""The network of development chains. Its key is derived from the key of account dev:0, which is public."""
EVMNET: Final = load_network("evmnet")
