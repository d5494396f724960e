"""What every party must agree on, bit for bit. Imports none of the parties.

`capture` is here for submitters; it is loaded when first used, because it brings torch with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from protocol.capture import capture

__all__ = ["capture"]


def __getattr__(name: str) -> Any:
    if name == "capture":
        from protocol.capture import capture

        return capture
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
