"""Caches broadcast shapes: torch takes tens of microseconds to compute one, and a small step needs hundreds
of them.
"""

from __future__ import annotations

from functools import lru_cache

import torch


@lru_cache(maxsize=4096)
def broadcast(*shapes: torch.Size) -> torch.Size:
    """The shape that several shapes broadcast to. Raises RuntimeError if they do not broadcast."""
    found: torch.Size = torch.broadcast_shapes(*shapes)
    return found
