"""Trains a task, one segment at a time.

Every segment ends with a checkpoint, which is written to disk while the next segment is trained. A run that
was interrupted at any point continues from the last checkpoint on disk. This module does not depend on the
chain, or on how many processes compute.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Protocol

from protocol.execution.replay import Executor, OnStep, run_steps
from protocol.program.step import State
from solver.pipeline import Pipeline
from solver.run_store import RunStore


class Runner(Protocol):
    """Computes the steps of a training."""

    def run(self, state: State, first: int, steps: int, on_step: OnStep, /) -> State:
        """The state after `steps` steps, the first of which has number `first`."""

    def close(self) -> None:
        """Release all resources."""


class LocalRunner:
    """Computes every step in this process."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def run(self, state: State, first: int, steps: int, on_step: OnStep, /) -> State:
        """The state after `steps` steps."""
        return run_steps(self._executor, state, first, steps, on_step)

    def close(self) -> None:
        """Does nothing, because nothing is held."""


class Training:
    """Continues a task's training from its last kept checkpoint. `initial` makes the first state; it is
    called only if no state is kept. `runner` computes the steps; by default, the run store's executor
    computes them in this process.

    `on_kept` is called on another thread for every segment's checkpoint once it is in the run store. Segments
    are trained inside the context that `scheduled` returns. This context is left before any wait for the
    disk. All methods must be called by one thread. If an earlier checkpoint could not be kept, `segment` and
    `finish` raise the error that prevented it. Call `close` at the end.
    """

    def __init__(
        self,
        run_store: RunStore,
        initial: Callable[[], State],
        on_kept: Callable[[], None] = lambda: None,
        runner: Runner | None = None,
        scheduled: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self.run_store = run_store
        self._scheduled = scheduled
        self._held = ExitStack()
        self._holds = False
        self._runner = runner or LocalRunner(run_store.executor)
        if run_store.size == 0:
            run_store.append(initial())
        self._trained = run_store.size - 1
        self._state: State = run_store.state(self._trained)
        self._pipeline = Pipeline(run_store, on_kept)

    @property
    def state(self) -> State:
        """The state after the last trained segment."""
        return self._state

    @property
    def segments_done(self) -> int:
        """Number of trained segments. The run store may not have all of their checkpoints yet."""
        return self._trained

    @property
    def steps(self) -> int:
        """Steps of the whole task."""
        return self.run_store.segments * self.run_store.segment_steps

    @property
    def steps_done(self) -> int:
        """Number of steps in the trained segments."""
        return self._trained * self.run_store.segment_steps

    @property
    def done(self) -> bool:
        """Whether all K segments are trained. After `finish`, all K + 1 checkpoints are kept, too."""
        return self._trained >= self.run_store.segments

    @property
    def failure(self) -> BaseException | None:
        """The error that prevented a checkpoint from being kept, if any."""
        return self._pipeline.failure

    def segment(self, on_step: OnStep) -> None:
        """Train the next segment and hand over its checkpoint to be kept."""

        def checked_step(number: int, state: State) -> None:
            on_step(number, state)
            self._pipeline.check()

        self._pipeline.check()
        if not self._holds:
            self._held.enter_context(self._scheduled())
            self._holds = True
        state = self._runner.run(self._state, self.steps_done + 1, self.run_store.segment_steps, checked_step)
        if self._pipeline.full:
            self._let_go()
        self._pipeline.put(state)
        self._state = state
        self._trained += 1

    def finish(self) -> None:
        """Wait until the checkpoints of all trained segments are in the run store."""
        self._let_go()
        self._pipeline.drain()

    def close(self) -> None:
        """Like `finish`, but an error in keeping a checkpoint is not raised; it is in `failure`. Afterwards
        nothing is computed or written any more.
        """
        self._let_go()
        self._runner.close()
        self._pipeline.close()

    def _let_go(self) -> None:
        """Release the device, so that other trainings may use it."""
        self._held.close()
        self._holds = False
