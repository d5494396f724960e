"""Parsing JSON from strangers: deep nesting raises an error and cannot end the process.

The standard library's parser recurses on the C stack for each bracket, up to Python's recursion limit. py_ecc
raises that limit beyond the size of the stack, so deep nesting would crash the process.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import TypeAdapter


def parse_json(data: bytes) -> Any:
    """Parse UTF-8 encoded JSON. Raises ValueError if it is invalid or too deeply nested."""
    from pydantic import ValidationError

    try:
        return _anything().validate_json(data)
    except ValidationError as error:
        raise ValueError(error.errors(include_url=False)[0]["msg"]) from None


@cache
def _anything() -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(Any)
