"""A move: the name of a contract function and its arguments in ABI order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Move:
    """One call of IDisputeGame. `note` says in words what is asked or answered, for logs and people. `answers` is a
    demand's: for each node the bytes of the leaf that is asked for, 0 for an inner node. Their deposits go with it.
    """

    function: str
    arguments: tuple[Any, ...]
    note: str = ""
    answers: tuple[int, ...] = ()
