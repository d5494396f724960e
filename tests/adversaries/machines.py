"""Machines on which a party's steps are late or fail, whatever it computes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import sleep

from protocol.dispute.provider import Frame
from protocol.execution.replay import Executor, ExecutorFactory, Work
from protocol.program.step import State


@dataclass(frozen=True)
class Machine:
    """What befalls which task. `log` is a file that gets one byte at the beginning of each step."""

    seconds: Mapping[int, float] = field(default_factory=dict)
    """How late a step of the task is."""
    failing: Collection[int] = ()
    """No step of these ends."""
    unloadable: Collection[int] = ()
    """Of these not even the executor is made."""
    log: Path | None = None

    def on_it(self, factory: ExecutorFactory) -> ExecutorFactory:
        """Makes executors of the factory run on this machine."""

        def make(work: Work) -> Executor:
            if work.task in self.unloadable:
                raise MemoryError(f"task {work.task}")
            return OnMachine(self, work.task, factory(work))

        return make


class OnMachine:
    """A `protocol.execution.replay.Executor` whose steps of one task are run on a machine."""

    def __init__(self, machine: Machine, task: int, executor: Executor) -> None:
        self._executor = executor
        self._seconds = machine.seconds.get(task, 0.0)
        self._fails = task in machine.failing
        self._log = machine.log

    def step(self, state: State, number: int, /) -> State:
        """The state after the step, late. Raises ZeroDivisionError where steps fail."""
        if self._log is not None:
            with self._log.open("ab", buffering=0) as log:
                log.write(b".")
        if self._fails:
            raise ZeroDivisionError("inside a library")
        sleep(self._seconds)
        return self._executor.step(state, number)

    def trace(self, state: State, number: int, /) -> Frame:
        """The step with all its values, in time."""
        return self._executor.trace(state, number)
