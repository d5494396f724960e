"""Machines with faults: a party's steps are late, its steps fail, or its executor cannot be created."""

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
    """A machine with faults for chosen tasks. If `log` is given, that file gets one byte at the beginning of
    each step.
    """

    seconds: Mapping[int, float] = field(default_factory=dict)
    """Additional seconds for each step, by task."""
    failing: Collection[int] = ()
    """Tasks in which every step fails. Their traces do not fail."""
    unloadable: Collection[int] = ()
    """Tasks whose executor cannot be created."""
    log: Path | None = None

    def on_it(self, factory: ExecutorFactory) -> ExecutorFactory:
        """A factory whose executors have this machine's faults."""

        def make(work: Work) -> Executor:
            if work.task in self.unloadable:
                raise MemoryError(f"task {work.task}")
            return OnMachine(self, work.task, factory(work))

        return make


class OnMachine:
    """A `protocol.execution.replay.Executor` that runs one task's steps with the faults of a `Machine`."""

    def __init__(self, machine: Machine, task: int, executor: Executor) -> None:
        self._executor = executor
        self._seconds = machine.seconds.get(task, 0.0)
        self._fails = task in machine.failing
        self._log = machine.log

    def step(self, state: State, number: int, /) -> State:
        """The state after the step, returned late. Raises ZeroDivisionError if the task's steps fail."""
        if self._log is not None:
            with self._log.open("ab", buffering=0) as log:
                log.write(b".")
        if self._fails:
            raise ZeroDivisionError("inside a library")
        sleep(self._seconds)
        return self._executor.step(state, number)

    def trace(self, state: State, number: int, /) -> Frame:
        """The step with all its values, without delay or failure."""
        return self._executor.trace(state, number)
