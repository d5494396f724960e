"""JSON from strangers: however deeply nested, it cannot do more than raise an error.

The standard library's parser uses a level of the C stack for each bracket, up to Python's own limit, which py_ecc
raises beyond the stack's size: there it would end the process.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import TypeAdapter


def parse_json(data: bytes) -> Any:
    """The value of UTF-8 encoded JSON. Raises ValueError, also for JSON that is nested too deeply."""
    return _anything().validate_json(data)


@cache
def _anything() -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(Any)
