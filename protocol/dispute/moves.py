"""A move: the name of a contract function and its arguments in ABI order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Move:
    """One call of IDisputeGame. `note` says in words what is asked or answered, for logs and people."""

    function: str
    arguments: tuple[Any, ...]
    note: str = ""
