"""Decides how a solver's process ends once it has no work left. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from protocol.chain.views import TaskStatus
from protocol.errors import ExitCode
from solver.errors import SolverError, StakeSlashed


def outcome(
    ended: Sequence[tuple[int, TaskStatus]], refused: Sequence[SolverError], drained: bool, once: bool
) -> ExitCode | None:
    """How the process ends; None if it continues. Raises StakeSlashed if the stake of a task was slashed.
    Otherwise, if runs were refused, raises the error of the first refused run. Otherwise returns the exit
    code if the solver is `drained`, or if `once` is set and a task has ended. `ended` holds the tasks of all
    deployments, so several may have the same number.
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
