"""Caches the results of functions of a program for as long as the program object exists.

A global cache would keep unused programs alive, and a node gets a new program with every task.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from protocol.program.program import Program

Found = TypeVar("Found")


def kept(function: Callable[[Program], Found]) -> Callable[[Program], Found]:
    """Decorator: call the function only once for each program object."""
    name = f"{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def once(program: Program) -> Found:
        held = vars(program)
        if name not in held:
            held[name] = function(program)
        found: Found = held[name]
        return found

    return once
