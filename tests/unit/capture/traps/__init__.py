"""Training code whose next step differs from the traced one, or only seems to.

Each trap states whether `capture` refuses it, and why, or computes what torch does.

    counted     numbers, flags and containers that Python changes from step to step
    outside     state on tensors, modules and packages; compilation checks, TorchScript
    kept        harmless Python state between steps
    machine     random numbers, clocks and files
    integers    integers and indices of the dataset
    memory      writes, views, and tensors from outside the step
"""

from __future__ import annotations

from tests.unit.capture.traps import counted, integers, kept, machine, memory, outside
from tests.unit.capture.traps.trap import TRAPS, Trap

__all__ = ["TRAPS", "Trap", "counted", "integers", "kept", "machine", "memory", "outside"]
