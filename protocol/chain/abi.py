"""Compiled contracts: their ABI and creation code, and encoding by function name.

Artifacts are what `make contracts` leaves under build/contracts/out, or under the folder that
`ASSAY_CONTRACTS` names. Encoding and decoding are eth-abi's; nothing here talks to a chain.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, cast

from eth_abi.abi import encode
from eth_typing import ABI, ABIError, ABIEvent, ABIFunction
from eth_utils.abi import (
    event_abi_to_log_topic,
    function_abi_to_4byte_selector,
    get_abi_input_types,
    get_abi_output_types,
)

from protocol.chain.errors import ArtifactMissing
from protocol.chain.values import decode_values

VARIABLE = "ASSAY_CONTRACTS"


def artifact_folder() -> Path:
    """Where the compiled contracts are."""
    chosen = os.environ.get(VARIABLE)
    return Path(chosen) if chosen else Path(__file__).parents[2] / "build" / "contracts" / "out"


@dataclass(frozen=True, eq=False)
class Contract:
    """One compiled contract. Functions of these contracts are not overloaded, so a name is enough."""

    name: str
    abi: ABI
    bytecode: bytes

    @cached_property
    def _functions(self) -> dict[str, ABIFunction]:
        return {entry["name"]: entry for entry in self.abi if entry["type"] == "function"}

    @cached_property
    def events(self) -> dict[bytes, ABIEvent]:
        """Events by their first topic."""
        return {event_abi_to_log_topic(entry): entry for entry in self.abi if entry["type"] == "event"}

    def encode(self, function: str, arguments: Sequence[Any]) -> bytes:
        """Call data. Raises eth-abi's EncodingError when the arguments do not fit."""
        entry = self._functions[function]
        return function_abi_to_4byte_selector(entry) + encode(get_abi_input_types(entry), list(arguments))

    def decode(self, function: str, data: bytes) -> tuple[Any, ...]:
        """The values that a function returned."""
        return decode_values(get_abi_output_types(self._functions[function]), data)

    def has(self, function: str) -> bool:
        """Whether the contract has a function of this name."""
        return function in self._functions

    def creation(self, arguments: Sequence[Any]) -> bytes:
        """Creation code followed by the constructor's arguments."""
        constructor = next((entry for entry in self.abi if entry["type"] == "constructor"), None)
        types = get_abi_input_types(constructor) if constructor else []
        return self.bytecode + encode(types, list(arguments))


@cache
def contract(name: str, file: str | None = None) -> Contract:
    """The compiled contract `name` of `<file or name>.sol`. Raises ArtifactMissing."""
    path = artifact_folder() / f"{file or name}.sol" / f"{name}.json"
    try:
        data = json.loads(path.read_bytes())
        code = data["bytecode"]["object"].removeprefix("0x")
        return Contract(name, cast(ABI, data["abi"]), bytes.fromhex(code))
    except (OSError, ValueError, KeyError) as error:
        raise ArtifactMissing(
            f"contract {name}",
            expected=f"a compiled contract at {path}",
            got=f"{type(error).__name__}",
            remedy="run `make contracts`",
        ) from error


@cache
def known_errors() -> dict[bytes, ABIError]:
    """Every Solidity error of every compiled contract, by selector."""
    found: dict[bytes, ABIError] = {}
    for path in sorted(artifact_folder().glob("*.sol/*.json")):
        for entry in json.loads(path.read_bytes()).get("abi", []):
            if entry["type"] == "error":
                found[function_abi_to_4byte_selector(entry)] = entry
    return found
