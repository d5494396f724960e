"""What a replay is asked, and what it finds (`replaying`). Does not need torch: a waiting node has not loaded it."""

from __future__ import annotations

from dataclasses import dataclass

FETCH_SHARE = 1 / 8
"""Share of the attestation time that one checkpoint from one source may take, and about what one `ask` may take. In
the half before a seat claims, two hostile sources leave room for two others.
"""


@dataclass(frozen=True, slots=True)
class Committed:
    """A segment tree as the chain holds it: `size` leaves r_0 … under `root`. The number `size` stands for a segment
    that would begin with the result: its only duty is to hold the result.
    """

    root: bytes
    size: int


@dataclass(frozen=True, slots=True)
class Equal:
    """The segment is as committed. `digests` are those of its states, or of the result, one per digester."""

    digests: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Different:
    """The commitment is not what the program gives.

    With the solver's `roots` r_0 …, `segment` is false given the state before it. Without them (None) the false
    segment is not known yet, and our own run from the initial state is kept. `digests` are those of our own states of
    the segment, one per digester, if it was replayed.
    """

    segment: int | None
    roots: tuple[bytes, ...]
    digests: tuple[bytes, ...] | None = None


Finding = Equal | Different
