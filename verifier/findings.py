"""The input of a replay (`Committed`) and its possible findings (`Equal`, `Different`). The replay itself is
in the module `replaying`, which needs torch. This module does not, because a waiting node has not loaded
torch.
"""

from __future__ import annotations

from dataclasses import dataclass

FETCH_SHARE = 1 / 8
"""Share of the attestation time that fetching one checkpoint from one source may take. One call of `ask` may
take roughly the same share. A seat files a claim when half of the attestation time has passed. Before the
claim there is time for four sources, so even if two of them are hostile, there is time for two others.
"""


@dataclass(frozen=True, slots=True)
class Committed:
    """A segment tree on the chain. `root` is its root, and `size` is the number of its leaves r_0 ….

    If `size` is used as a segment number, it stands for the result. That segment has no steps: all that it
    requires of a seat is to hold the result.
    """

    root: bytes
    size: int


@dataclass(frozen=True, slots=True)
class Equal:
    """The segment is as committed. `digests` has one digest per digester: of the segment's states, or of the
    result if the segment number stands for the result.
    """

    digests: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Different:
    """The commitment differs from what the program gives.

    If the solver's `roots` r_0 … are known, `segment` is the false segment: the committed state before it
    does not lead to the committed state after it. Otherwise `segment` is None and `roots` are empty: the
    false segment is not known yet, and our own run from the initial state is kept.

    If the segment was replayed, `digests` has one digest per digester, of the states that our replay gave.
    Otherwise `digests` is None.
    """

    segment: int | None
    roots: tuple[bytes, ...]
    digests: tuple[bytes, ...] | None = None


Finding = Equal | Different
