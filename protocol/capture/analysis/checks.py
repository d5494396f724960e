"""What `capture` refuses of the option `bits`. Raises `CaptureError`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from protocol.capture.errors import CaptureError, Problem, raise_any


def require_bits(overrides: Mapping[str, Any], roles: Collection[str]) -> None:
    """Refuse what is no mapping, a name that is no role, and a value that is no pair of 13 and 20."""
    names = ", ".join(roles)
    remedy = f"give two of 13 and 20, as in (20, 13), for one of: {names}"
    if not isinstance(overrides, Mapping):
        raise CaptureError([Problem(f"bits is of type {type(overrides).__name__}", f"pass a dict; {remedy}")])
    raise_any(
        Problem(f"bits for {name!r}: {value!r}", remedy)
        for name, value in overrides.items()
        if name not in roles or not _are_bits(value)
    )


def _are_bits(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(p in (13, 20) for p in value)
