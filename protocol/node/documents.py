"""JSON from strangers: nested as deep as it likes, it ends in an error.

The standard library's parser takes a level of the C stack for each bracket, up to Python's own limit, which py_ecc
raises beyond what the stack holds: there it ends the process.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import TypeAdapter


def parse_json(data: bytes) -> Any:
    """The value that UTF-8 encoded JSON says. Raises ValueError, also for what is nested too deep."""
    return _anything().validate_json(data)


@cache
def _anything() -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(Any)
