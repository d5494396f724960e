"""A contract's error in words: amounts in tokens, how late a call was, and what to do.

Solidity errors have only names and numbers (contracts/src/libraries/Refusals.sol).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from protocol.node.words import amount, duration

_TOKENS: Final = {
    "NotEnoughFree": ("needed", "available"),
    "BidTooHigh": ("best", "undercut", "price"),
    "ERC20InsufficientBalance": ("balance", "needed"),
    "ERC20InsufficientAllowance": ("allowance", "needed"),
}
"""The arguments that are amounts in token units, by error."""
_COIN: Final = {"DepositTooSmall": ("due", "given")}
"""The arguments that are amounts in wei, by error."""
_REMEDIES: Final = {
    "UnknownTask": "there is no such task under these contracts: `assay status --past` shows all",
    "UnknownSeat": "the task has fewer seats: `assay status TASK` shows them",
    "NotEnoughFree": "bring more tokens into the vault, or lock less",
    "ERC20InsufficientBalance": "send tokens to the account, on a development chain by `assay fund`",
    "ERC20InvalidReceiver": "name another address",
    "TooEarly": "try again then",
    "TooLate": "its time is over",
    "BidTooHigh": "bid less by the least undercut",
    "NotRegistered": "`verifier watch` registers an account",
    "NotResigned": "`verifier resign` comes first",
    "HasSeat": "let `verifier watch` run until the account's seats are released",
    "StaleBeacon": "show a newer round of the beacon first",
}


def said(name: str, arguments: Mapping[str, Any]) -> str:
    """An error with its arguments, in words."""
    if name in ("TooEarly", "TooLate"):
        missed = arguments["until"] - arguments["time"]
        return f"{name}(by {duration(abs(missed))})"
    shown = ", ".join(f"{key}={_show(name, key, value)}" for key, value in arguments.items())
    return f"{name}({shown})"


def remedy(name: str) -> str:
    """What to do about an error."""
    return _REMEDIES.get(name, "see this error in the contract's interface")


def _show(name: str, key: str, value: Any) -> str:
    if key in _TOKENS.get(name, ()):
        return f"{amount(value)} tokens"
    if key in _COIN.get(name, ()):
        return f"{amount(value)} coin"
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, tuple | list):
        return "[" + ", ".join(_show(name, "", item) for item in value) + "]"
    return str(value)
