"""Shapes of results, remembered: torch takes tens of microseconds for one, and small steps ask for hundreds."""

from __future__ import annotations

from functools import lru_cache

import torch


@lru_cache(maxsize=4096)
def broadcast(*shapes: torch.Size) -> torch.Size:
    """The shape that several broadcast to. Raises RuntimeError where there is none."""
    found: torch.Size = torch.broadcast_shapes(*shapes)
    return found
