"""Writes the package's contract data, protocol/chain/contracts/*.json, from forge's artifacts.

`make contracts` runs this after forge. These files are all that the package reads of the contracts, both in a
checkout and when installed. Each deployed contract has one file, whose content `format` makes. An interface's
file has only its ABI. `errors.json` has every Solidity error that the contracts can raise. This script uses
only the standard library, so any Python can run it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
COMPILED = REPOSITORY / "build" / "contracts" / "out"
DATA = REPOSITORY / "protocol" / "chain" / "contracts"

DEPLOYED = (
    "Arbiter",
    "AuditBoard",
    "Commitments",
    "DisputeGame",
    "DrandBeacon",
    "Evidence",
    "Juries",
    "Looks",
    "StakeVault",
    "TaskMarket",
    "TermsBounds",
    "TestToken",
)
"""Deployed contracts. The game creates Evidence; TestToken is only for development chains."""
INTERFACES = ("IERC20",)
"""Other parties' contracts that the package calls; only their ABI is written."""

Artifact = Mapping[str, Any]


def write(compiled: Path = COMPILED, folder: Path = DATA) -> list[Path]:
    """Write every file whose content has changed, and remove obsolete ones; returns the written files.

    Raises OSError, KeyError or ValueError for missing or malformed artifacts.
    """
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {f"{name}.json": document for name, document in documents(compiled).items()}
    for path in folder.glob("*.json"):
        if path.name not in wanted:
            path.unlink()
    written = []
    for name, document in wanted.items():
        path = folder / name
        text = json.dumps(document, separators=(",", ":"), sort_keys=True) + "\n"
        if not path.is_file() or path.read_text() != text:
            scratch = path.with_suffix(f".{os.getpid()}.new")
            scratch.write_text(text)
            scratch.replace(path)
            written.append(path)
    return written


def documents(compiled: Path) -> dict[str, Any]:
    """The content of each file, by its name without suffix."""
    deployed = {name: artifact(compiled, name) for name in DEPLOYED}
    sources = {path for made in deployed.values() for path in made["metadata"]["sources"]}
    interfaces = {name: {"abi": artifact(compiled, name)["abi"]} for name in INTERFACES}
    return {
        **{name: format(made) for name, made in deployed.items()},
        **interfaces,
        "errors": errors(compiled, sources),
    }


def artifact(compiled: Path, name: str) -> Artifact:
    """Forge's artifact of a contract. An interface that is compiled in two profiles has two artifacts with
    the same ABI; one of them is returned.
    """
    folder = compiled / f"{name}.sol"
    whole = folder / f"{name}.json"
    path = whole if whole.is_file() else min(folder.glob(f"{name}.*.json"), default=whole)
    found: Artifact = json.loads(path.read_bytes())
    return found


def format(made: Artifact) -> dict[str, Any]:
    """The ABI, the creation and runtime code in hexadecimal, and the places in the runtime code where the
    constructor writes immutables.

    Immutables are sorted by their first place. Each place is [start, length] in bytes.
    """
    runtime = made["deployedBytecode"]
    places = [
        sorted([place["start"], place["length"]] for place in found)
        for found in runtime.get("immutableReferences", {}).values()
    ]
    return {
        "abi": made["abi"],
        "creation": made["bytecode"]["object"].removeprefix("0x"),
        "runtime": runtime["object"].removeprefix("0x"),
        "immutables": sorted(places),
    }


def errors(compiled: Path, sources: set[str]) -> list[Any]:
    """The errors in the ABIs of the contracts in these source files, without duplicates, sorted by name."""
    found = {}
    for made in artifacts(compiled):
        (target,) = made["metadata"]["settings"]["compilationTarget"]
        if target in sources:
            for entry in made["abi"]:
                if entry["type"] == "error":
                    found[json.dumps(entry, sort_keys=True)] = entry
    return [entry for _, entry in sorted(found.items(), key=lambda pair: (pair[1]["name"], pair[0]))]


def artifacts(compiled: Path) -> Iterator[Artifact]:
    """Forge's artifacts that name their source."""
    for path in sorted(compiled.glob("*.sol/*.json")):
        made: Artifact = json.loads(path.read_bytes())
        if "metadata" in made:
            yield made


if __name__ == "__main__":
    try:
        write()
    except (OSError, KeyError, ValueError) as error:
        sys.exit(
            f"contract data: expected forge's artifacts under {COMPILED}, got {error!r}; run `make contracts`"
        )
