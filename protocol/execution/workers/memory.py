"""Estimates how many workers fit into this machine's free memory, before any worker starts. What a worker
needs is estimated from the program alone.

This is not a guarantee. A kernel may need more memory temporarily (`WORKSPACE` in
`protocol.tasks.bundles.limits`), a fused kernel needs less, other processes may take memory later, and a
container's limit is not read. The check only refuses numbers of workers that could never fit.
"""

from __future__ import annotations

from pathlib import Path

from protocol.execution.workers.errors import TooLittleMemory
from protocol.program.cost import cost
from protocol.program.step import StepProgram

LIBRARIES = 300 << 20
"""Bytes of a process that has only imported torch: 232 MiB measured (2026-11-21), plus some for threads."""
MEMINFO = Path("/proc/meminfo")


def needed(program: StepProgram) -> int:
    """Bytes that one worker takes: the peak of the values alive in a step, plus the libraries."""
    return cost(program.program).peak_bytes + LIBRARIES


def available() -> int | None:
    """Linux's estimate of the bytes that processes can still take without swapping; None on other systems."""
    if not MEMINFO.is_file():
        return None
    for line in MEMINFO.read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def fitting(program: StepProgram, processes: int) -> int:
    """How many of `processes` workers fit into the free memory. All of them if the free memory is not known."""
    free = available()
    return processes if free is None else min(processes, free // needed(program))


def require_memory(program: StepProgram, processes: int) -> None:
    """Raise TooLittleMemory unless `processes` workers fit."""
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
