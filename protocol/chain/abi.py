"""Compiled contracts: their ABI and code, and encoding by function name.

The data are the package's files `contracts/*.json`. scripts/contract_data.py writes them from forge's
artifacts, and the wheel includes them. eth-abi encodes and decodes; nothing here talks to a chain.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

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

DATA: Final = Path(__file__).parent / "contracts"
"""Folder of the package's contract data."""


Places = tuple[tuple[tuple[int, int], ...], ...]


@dataclass(frozen=True, eq=False)
class Contract:
    """One compiled contract. None of its functions is overloaded, so a function's name identifies it."""

    name: str
    abi: ABI
    bytecode: bytes = b""
    """Creation code without the constructor's arguments; empty for an interface."""
    runtime: bytes = b""
    """Runtime code, as a chain stores it, but with zeros in place of the immutables."""
    immutables: Places = ()
    """For each immutable, the start and length in `runtime` of every place where it is inserted."""

    @cached_property
    def _functions(self) -> dict[str, ABIFunction]:
        return {entry["name"]: entry for entry in self.abi if entry["type"] == "function"}

    @cached_property
    def _selectors(self) -> dict[bytes, ABIFunction]:
        return {function_abi_to_4byte_selector(entry): entry for entry in self._functions.values()}

    @cached_property
    def events(self) -> dict[bytes, ABIEvent]:
        """Events by their first topic."""
        return {event_abi_to_log_topic(entry): entry for entry in self.abi if entry["type"] == "event"}

    def encode(self, function: str, arguments: Sequence[Any]) -> bytes:
        """The call data of a function. Raises eth-abi's EncodingError if the arguments do not fit."""
        entry = self._functions[function]
        return function_abi_to_4byte_selector(entry) + encode(get_abi_input_types(entry), list(arguments))

    def arguments(self, data: bytes) -> dict[str, Any]:
        """The arguments in call data, by parameter name. Raises eth-abi's DecodingError, and KeyError for an
        unknown function.
        """
        entry = self._selectors[data[:4]]
        values = decode_values(get_abi_input_types(entry), data[4:])
        return {item["name"]: value for item, value in zip(entry["inputs"], values, strict=True)}

    def decode(self, function: str, data: bytes) -> tuple[Any, ...]:
        """Decode the data that a function returned."""
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
def contract(name: str) -> Contract:
    """The compiled contract with this name. Raises ArtifactMissing."""
    data = _read(name)
    return Contract(
        name,
        data["abi"],
        bytes.fromhex(data.get("creation", "")),
        bytes.fromhex(data.get("runtime", "")),
        tuple(tuple((start, length) for start, length in found) for found in data.get("immutables", ())),
    )


@cache
def known_errors() -> dict[bytes, ABIError]:
    """All Solidity errors of the package's contracts, by selector."""
    entries: list[ABIError] = _read("errors")
    return {function_abi_to_4byte_selector(entry): entry for entry in entries}


def _read(name: str) -> Any:
    path = DATA / f"{name}.json"
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ArtifactMissing(
            f"contract data {name}",
            expected=f"the package's file {path}",
            got=type(error).__name__,
            remedy="run `make contracts` in a checkout, or install the package again",
        ) from error
