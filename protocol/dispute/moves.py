"""A move: the name of a contract function and its arguments in ABI order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Move:
    """One call of IDisputeGame. `note` describes the move in logs. A demand also has `answers`: for each
    node, the number of bytes of the requested leaf, or 0 for an inner node. These numbers determine the
    deposits for the demand.
    """

    function: str
    arguments: tuple[Any, ...]
    note: str = ""
    answers: tuple[int, ...] = ()
