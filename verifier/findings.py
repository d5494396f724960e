"""What a replay is asked about, and its findings (`replaying`). This module does not need torch, which a
waiting node has not loaded.
"""

from __future__ import annotations

from dataclasses import dataclass

FETCH_SHARE = 1 / 8
"""Share of the attestation time for fetching one checkpoint from one source, and roughly for one `ask`.
Seats claim at half of the attestation time, so two hostile sources still leave time for two others.
"""


@dataclass(frozen=True, slots=True)
class Committed:
    """A segment tree on the chain: `size` leaves r_0 … under `root`. As a segment number, `size` stands
    for the result: such a segment has no steps, and its only duty is to hold the result.
    """

    root: bytes
    size: int


@dataclass(frozen=True, slots=True)
class Equal:
    """The segment is as committed. `digests` are those of its states, or of the result, one per digester."""

    digests: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Different:
    """The commitment differs from what the program gives.

    If the solver's `roots` r_0 … are known, `segment` is the false segment: the committed state before it
    does not lead to the committed state after it. Otherwise `segment` is None and `roots` are empty: the
    false segment is not known yet, and our own run from the initial state is kept.

    If the segment was replayed, `digests` are those of our own states of it, one per digester; otherwise
    None.
    """

    segment: int | None
    roots: tuple[bytes, ...]
    digests: tuple[bytes, ...] | None = None


Finding = Equal | Different
