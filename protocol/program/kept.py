"""What is computed from a program once and kept as long as the program exists.

A separate cache would keep unused programs: a node sees a new one with every task.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from protocol.program.program import Program

Found = TypeVar("Found")


def kept(function: Callable[[Program], Found]) -> Callable[[Program], Found]:
    """The function, called once for each program."""
    name = f"{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def once(program: Program) -> Found:
        held = vars(program)
        if name not in held:
            held[name] = function(program)
        found: Found = held[name]
        return found

    return once
