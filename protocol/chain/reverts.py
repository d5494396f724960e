"""Decodes revert data with the contracts' own errors: a name and arguments instead of hexadecimal digits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eth_abi.exceptions import DecodingError
from eth_utils.abi import get_abi_input_types

from protocol.chain.abi import known_errors
from protocol.chain.errors import Reverted
from protocol.chain.values import decode_values

_ERROR = bytes.fromhex("08c379a0")  # Error(string): require with a message
_PANIC = bytes.fromhex("4e487b71")  # Panic(uint256): assert, overflow, bad index
_REVERT_CODE = 3  # code of a JSON-RPC error for a revert, introduced by geth


def explain(data: bytes) -> tuple[str, dict[str, Any]]:
    """Name and arguments of the error that revert data carries."""
    selector, body = data[:4], data[4:]
    entry = known_errors().get(selector)
    try:
        if entry is not None:
            names = [item["name"] for item in entry.get("inputs", [])]
            return entry["name"], dict(
                zip(names, decode_values(get_abi_input_types(entry), body), strict=True)
            )
        if selector == _ERROR:
            return "Error", {"message": decode_values(["string"], body)[0]}
        if selector == _PANIC:
            return "Panic", {"code": hex(decode_values(["uint256"], body)[0])}
    except DecodingError:
        return "UndecodableError", {"data": data}
    return ("UnknownError", {"data": data}) if data else ("NoReason", {})


def as_revert(label: str, error: Mapping[str, Any]) -> Reverted | None:
    """Convert a JSON-RPC error to `Reverted` if a contract raised it. Returns None for any other error."""
    message = str(error.get("message", ""))
    if error.get("code") != _REVERT_CODE and "revert" not in message.lower():
        return None
    data = error.get("data")
    try:
        raw = bytes.fromhex(data.removeprefix("0x")) if isinstance(data, str) else b""
    except ValueError:
        raw = b""
    if not raw:
        return Reverted(label, "NoReason", {"message": message})
    return Reverted(label, *explain(raw))
