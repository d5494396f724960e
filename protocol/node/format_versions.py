"""Checks of the version that a JSON document gives. Only the exact integer is accepted: in Python, the values
of JSON's `true` and `1.0` equal 1, but neither is a version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo


def only(version: int) -> FieldInfo:
    """The constraint of a model's version field, as in `Annotated[int, only(1)]`: exactly this integer. A
    `Literal` would accept every value that equals the integer, even in a strict model.
    """
    from pydantic import Field

    made: FieldInfo = Field(strict=True, ge=version, le=version)
    return made


def is_version(found: object, version: int) -> bool:
    """Whether a value that was parsed from JSON is exactly this integer."""
    return type(found) is int and found == version
