"""Decides how a solver's process ends once it has no work left. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from protocol.chain.views import TaskStatus
from protocol.errors import ExitCode
from solver.errors import SolverError, StakeSlashed


def outcome(
    ended: Sequence[tuple[int, TaskStatus]], refused: Sequence[SolverError], drained: bool, once: bool
) -> ExitCode | None:
    """How the process ends; None if it continues. If a task's stake was slashed, raises StakeSlashed. If a
    run was refused, raises the error of that run. If the solver is `drained`, or with `once` after the first
    task, returns the exit code. `ended` are tasks of all deployments, so several may have the same number.
    """
    if not (ended or refused or drained):
        return None
    slashed = [task for task, status in ended if status is TaskStatus.SLASHED]
    if slashed:
        raise StakeSlashed(
            f"task {slashed[0]}",
            expected="to be paid",
            got="its stake slashed",
            remedy="check this machine with `make test` before it bids again",
        )
    if refused:
        raise refused[0]
    return ExitCode.FINE if once or drained else None
