"""Decides how a solver's process ends once it has no work left. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from protocol.chain.views import TaskStatus
from protocol.errors import ExitCode
from solver.errors import SolverError, StakeSlashed


def outcome(
    ended: Sequence[tuple[int, TaskStatus]], refused: Sequence[SolverError], drained: bool, once: bool
) -> ExitCode | None:
    """The exit code; None if the process continues. The process ends after a slash, a refused run, an order
    to drain and, with `once`, after the first task. `ended` are tasks of all deployments, so several may
    have the same number. Raises StakeSlashed, and the error of a refused run.
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
