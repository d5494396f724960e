"""Training code whose next step differs from the traced step, or only seems to differ.

Each trap states what `capture` must do: either refuse it for a given reason, or compute what torch computes.

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
