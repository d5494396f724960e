"""Compares a captured step on a CUDA device with the CPU: run kernel by kernel, recorded, and replayed."""

from __future__ import annotations

import torch

from protocol.capture import CapturedStep
from protocol.execution.device import WARM_STEPS, DeviceExecutor
from protocol.execution.replay import Work
from protocol.program.library import kernels
from protocol.program.step import State

STEPS = WARM_STEPS + 2
"""Number of steps. The first `WARM_STEPS` run kernel by kernel, the next one is recorded, and the last one is
replayed.
"""


def other_bits(step: CapturedStep, device: torch.device, seed: int = 7) -> str:
    """A text that names the first step after which a root differs, and the tensors whose roots differ. It is
    empty if no root differs.
    """
    program = step.step_program
    work = Work(1, program, step.fixed, kernels(program.program, step.hints))
    executor = DeviceExecutor(work, device)
    here = step.initial_state(seed)
    there: State = here
    for number in range(1, STEPS + 1):
        here = step.step(here)
        there = executor.step(there, number)
        found = program.tensor_roots({name: x.cpu() for name, x in there.items()})
        wrong = [name for name, a, b in zip(program.state, found, program.tensor_roots(here)) if a != b]
        if wrong:
            return f"after step {number}: {', '.join(wrong)}"
    return ""
