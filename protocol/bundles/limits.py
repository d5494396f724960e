"""What an operator is ready to take from a stranger, and from where."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Every size is checked before it is fetched, and again while it arrives."""

    manifest_bytes: int = 1 << 24
    """About 300 bytes a tensor and 200 a program: room for 50,000 of them."""
    program_bytes: int = 1 << 26
    """All encoded programs together; 65,535 instructions of 100 bytes are a tenth of it."""
    total_bytes: int = 1 << 34
    """All tensors together."""
    step_operations: int = 1 << 48
    """Scalar operations of one step: a day on a device of three tera-operations a second."""
    peak_bytes: int = 1 << 36
    """Most memory that a step may need."""
    seconds: float = 3600.0
    """For the whole bundle; a server that trickles loses."""
    allowed: tuple[str, ...] = ()
    """fsspec URLs below which bundles may be read, such as `file:///srv/bundles/` or `s3://mine/`, besides
    http(s).
    """
