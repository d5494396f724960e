"""What an operator accepts from strangers, and from where."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from protocol.node.reach import Reach

WORKSPACE = 5
"""Multiple of a step's `peak_bytes` that primitives and kernels need with their temporaries. Measured: 4.2 for
`round_scaled`, 5.0 for a `dot` of batches, 2 for most.
"""


def _affordable() -> int:
    """Bytes of values for which this machine has the memory, including temporaries of primitives."""
    return min(1 << 36, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // WORKSPACE)


@dataclass(frozen=True, slots=True)
class Limits:
    """Every size is checked before fetching, and again on arrival."""

    manifest_bytes: int = 1 << 24
    """About 300 bytes a tensor and 200 a program: room for 50,000 of them."""
    program_bytes: int = 1 << 26
    """All encoded programs together; 65,535 instructions of 100 bytes are a tenth of it."""
    total_bytes: int = 1 << 34
    """All tensors together."""
    step_operations: int = 1 << 48
    """Operations of one step: a day on a device of three tera-operations a second."""
    peak_bytes: int = field(default_factory=_affordable)
    """Most canonical bytes alive in a step: a fifth of the machine's memory, at most 64 GiB."""
    seconds: float = 3600.0
    """Seconds for the whole bundle, so that a trickling server fails."""
    allowed: tuple[str, ...] = ()
    """URLs below which bundles may be read in addition to https and http on the internet: fsspec's, such as
    `file:///srv/bundles/` or `s3://mine/`, and http of a private network, such as `http://192.168.1.5:8700/`.
    """
    this_machine: bool = True
    """Whether plain http may lead to this machine: on a development chain, whose parties share a machine."""

    @property
    def reach(self) -> Reach:
        """Where http addresses may lead."""
        return Reach(self.allowed, self.this_machine)
