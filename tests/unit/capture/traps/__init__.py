"""Training code whose next step is not the traced one, or only seems so. Each trap says whether `capture` refuses it,
and why, or computes what torch does.

    counted     numbers, flags and containers that Python changes from step to step
    outside     what the step leaves on tensors, modules and the optimiser, and asks of torch
    kept        what Python keeps and may keep
    machine     random numbers, clocks, files
    integers    integers and indices of the dataset
    memory      writes, views, tensors from elsewhere
"""

from __future__ import annotations

from tests.unit.capture.traps import counted, integers, kept, machine, memory, outside
from tests.unit.capture.traps.trap import TRAPS, Trap

__all__ = ["TRAPS", "Trap", "counted", "integers", "kept", "machine", "memory", "outside"]
