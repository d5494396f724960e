"""An operator's limits for bundles from strangers: on their sizes and their addresses."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from protocol.node.reach import Reach
from protocol.tasks.bundles.room import Reserve

WORKSPACE = 5
"""Memory that primitives and kernels need, including temporaries, as a multiple of a step's `peak_bytes`.

Measured: 4.5 for `quantise`, 4.2 for `round_scaled`, 5.0 for a `dot` of batches, and 1 to 3 for most others,
even if the operands are far smaller than the result.
"""


def _affordable() -> int:
    """The largest `peak_bytes`, up to 64 GiB, for which this machine has enough memory, temporaries included."""
    return min(1 << 36, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // WORKSPACE)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for a bundle. Every size is checked before the data is fetched, and again when it arrives."""

    manifest_bytes: int = 1 << 24
    """Size of the manifest. An entry takes about 300 bytes for a tensor and 200 for a program, so 50,000 fit."""
    program_bytes: int = 1 << 26
    """Total size of all encoded programs. The default is about ten times the size of 65,535 instructions of
    100 bytes each.
    """
    total_bytes: int = 1 << 34
    """Total size of all tensors."""
    step_operations: int = 1 << 48
    """Operations of one step. The default is a day's work at 3 x 10^9 operations a second."""
    peak_bytes: int = field(default_factory=_affordable)
    """Canonical bytes alive at once in a step: by default a fifth of the machine's memory, at most 64 GiB."""
    reserve: Reserve | None = None
    """Reserves disk space for the tensors that must still be fetched, before any of them is fetched (`room`)."""
    seconds: float = 3600.0
    """Seconds for the whole bundle, so that fetching from a very slow server ends."""
    allowed: tuple[str, ...] = ()
    """URL prefixes below which bundles may be read, besides https and http on the internet: fsspec URLs such
    as `file:///srv/bundles/` or `s3://mine/`, and http in a private network, such as
    `http://192.168.1.5:8700/`.
    """
    this_machine: bool = True
    """Whether plain http may lead to this machine, as on a development chain, where all parties share a machine."""

    @property
    def reach(self) -> Reach:
        """The hosts that http addresses may lead to."""
        return Reach(self.allowed, self.this_machine)
