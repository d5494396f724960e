"""How many workers this machine's free memory holds: known from the program alone, before any starts.

Not a promise: a kernel may need more on the way (`WORKSPACE` in `protocol.tasks.bundles.limits`), a fused one needs
less, others may take memory later, and a container's own limit is not read. It refuses numbers that could never have
fitted.
"""

from __future__ import annotations

from pathlib import Path

from protocol.execution.workers.errors import TooLittleMemory
from protocol.program.cost import cost
from protocol.program.step import StepProgram

LIBRARIES = 300 << 20
"""Bytes of a process with torch loaded and nothing computed: 232 MiB measured (2026-11-21), and room for threads."""
MEMINFO = Path("/proc/meminfo")


def needed(program: StepProgram) -> int:
    """Bytes that one worker takes: the most values alive at once in a step, and the libraries."""
    return cost(program.program).peak_bytes + LIBRARIES


def available() -> int | None:
    """Bytes that processes may still take without swapping, as Linux estimates it; None elsewhere."""
    if not MEMINFO.is_file():
        return None
    for line in MEMINFO.read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def fitting(program: StepProgram, processes: int) -> int:
    """How many of `processes` workers fit into the memory that is free; all of them where that is not known."""
    free = available()
    return processes if free is None else min(processes, free // needed(program))


def require_memory(program: StepProgram, processes: int) -> None:
    """Raise TooLittleMemory unless that many workers fit."""
    fit = fitting(program, processes)
    if fit < processes:
        each, free = needed(program), available() or 0
        raise TooLittleMemory(
            f"{processes} processes: expected {processes} x {_mebibytes(each)} of free memory for this step, "
            f"got {_mebibytes(free)}; start at most {fit}, or free memory"
            if fit
            else f"{processes} processes: expected {_mebibytes(each)} of free memory for each, "
            f"got {_mebibytes(free)}; train in one process, or free memory"
        )


def _mebibytes(count: int) -> str:
    return f"{count / (1 << 20):,.0f} MiB"
