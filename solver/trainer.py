"""Trains a task on its own thread, so that computing never delays the loop that looks after all tasks."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event, Thread

from protocol.execution.replay import OnStep
from protocol.execution.turns import Stopped
from protocol.program.step import State
from solver.training import Training


class Trainer:
    """Trains all remaining segments, starting at once. `make` opens the training, on the trainer's thread.

    `on_step` and `on_segment` are called after each step and segment. Once the trainer has `ended`, all
    memory is released. All trained segments are then in the run store, unless there was a `failure`.
    """

    def __init__(
        self, make: Callable[[], Training], on_step: OnStep, on_segment: Callable[[Training], object]
    ) -> None:
        self._make = make
        self._on_step = on_step
        self._on_segment = on_segment
        self._paused = Event()
        self._stopped = Event()
        self.failure: BaseException | None = None
        self.failed_after = 0.0
        """Seconds from the last step to the failure. If there was no step, they are counted from the start."""
        self._done = False
        self._last = time.monotonic()
        # A daemon, so that a second Ctrl-C ends the process without waiting for a step.
        self._thread = Thread(target=self._run, name="solver-training", daemon=True)
        self._thread.start()

    @property
    def ended(self) -> bool:
        """Whether the thread has ended: nothing is computed or written any more."""
        return not self._thread.is_alive()

    @property
    def done(self) -> bool:
        """Whether all segments are trained. Their last checkpoints may not be in the run store yet. Once the
        thread has ended without a failure, all of them are.
        """
        return self._done

    def pause(self) -> None:
        """End after the present segment."""
        self._paused.set()

    def stop(self) -> None:
        """End after the present step. The steps of an unfinished segment are lost."""
        self._stopped.set()

    def join(self) -> None:
        """Wait until the thread has ended."""
        self._thread.join()

    def _run(self) -> None:
        training = None
        try:
            training = self._make()
            while not (training.done or self._paused.is_set()):
                training.segment(self._checked_step)
                self._on_segment(training)
            self._done = training.done
            training.finish()
        except Stopped:
            pass
        except BaseException as error:
            self._fail(error)
        finally:
            if training is not None:
                training.close()
                if training.failure is not None and self.failure is None:
                    self._fail(training.failure)

    def _checked_step(self, number: int, state: State) -> None:
        self._last = time.monotonic()
        if self._stopped.is_set():
            raise Stopped
        self._on_step(number, state)

    def _fail(self, error: BaseException) -> None:
        self.failure = error
        self.failed_after = time.monotonic() - self._last
