"""Training by several processes of this machine: `solver run --processes N`.

The bits are the same as with one process; only the speed differs. This process trains a task alone if the
task's steps do not run on the CPU, if its program has no units (independent calls that processes can share),
if the workers do not fit into memory, or if workers were lost twice in one segment. If workers disagree about
a state, this machine computes wrong bits, and the solver stops before it commits to that state.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

from protocol.execution.replay import Executor, HonestExecutor, OnStep, Work
from protocol.execution.workers import TooLittleMemory, WorkerLost
from protocol.execution.workers.memory import available, fitting, needed
from protocol.execution.workers.pool import Turn, Workers
from protocol.node.logs import get
from protocol.program.parallel.units import units
from protocol.program.step import State
from protocol.tasks.task import Terms
from solver.context import Context
from solver.training import LocalRunner, Runner

ATTEMPTS = 2
"""Number of attempts to train one segment with workers."""


def runner(context: Context, work: Work, terms: Terms, executor: Executor) -> Runner:
    """The runner that trains a task, taking turns with other work. The solver's folder must hold the verified
    copy of the task's bundle.

    Workers compute as `HonestExecutor` does, on the CPU; any other executor runs in this process.
    """
    alone = LocalRunner(context.in_turns(executor, work.task, terms))
    wanted = context.settings.processes
    if wanted == 1 or type(executor) is not HonestExecutor:
        return alone
    there = len(units(work.program.program))
    processes = min(wanted, max(1, there))
    if processes < wanted:
        context.log.info(
            "fewer processes", task=work.task, processes=processes, asked=wanted, units=max(1, there)
        )
    fit = max(1, fitting(work.program, processes))
    if fit < processes:
        context.log.warning(
            "too little memory, fewer processes",
            task=work.task,
            processes=fit,
            asked=processes,
            bytes_each=needed(work.program),
            bytes_free=available(),
        )
    if fit == 1:
        return alone
    folder = context.bundles / terms.bundle_hash.hex()
    return WorkerRunner(work, folder, terms.bundle_hash, fit, alone, context.turns.ordinary)


class WorkerRunner:
    """Trains with workers. They are started for the first segment, and restarted if one of them is lost."""

    def __init__(
        self,
        work: Work,
        folder: Path,
        bundle_hash: bytes,
        processes: int,
        alone: LocalRunner,
        turn: Turn = nullcontext,
    ) -> None:
        self.processes = processes
        self._start: Callable[[], Workers] = lambda: Workers(folder, bundle_hash, work.program, processes)
        self._alone = alone
        self._turn = turn
        self._workers: Workers | None = None
        self._given_up = False
        self._log = get("solver.processes").bind(task=work.task)

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers; empty while none run."""
        return [] if self._workers is None else self._workers.pids

    def run(self, state: State, first: int, steps: int, on_step: OnStep, /) -> State:
        """The state after `steps` steps. Raises WorkerFailed if the workers disagree about it, or if one of
        them finds that this machine computes wrong bits.
        """
        for _ in range(ATTEMPTS):
            if self._given_up:
                break
            try:
                if self._workers is None:
                    self._workers = self._start()
                    self._log.info("training together", processes=len(self._workers.pids))
                return self._workers.run(state, first, steps, on_step, self._turn)
            except TooLittleMemory as error:
                self._given_up = True
                self._log.warning("training in this process alone", reason=str(error))
            except WorkerLost as error:
                self._workers = None
                self._log.error("worker lost, training again from the last checkpoint", error=str(error))
            except BaseException:
                self._workers = None  # any error stops them
                raise
        if not self._given_up:
            self._given_up = True
            self._log.warning("training in this process alone", after=ATTEMPTS)
        return self._alone.run(state, first, steps, on_step)

    def close(self) -> None:
        """Stop the workers."""
        if self._workers is not None:
            self._workers.close()
            self._workers = None
