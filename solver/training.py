"""Training a task, one segment at a time: so that between two segments games can be answered.

Every segment ends with a checkpoint on disk; a run that was cut off anywhere goes on from the last one. Nothing here
knows of the chain.
"""

from __future__ import annotations

from collections.abc import Callable

from protocol.program.step import State
from solver.record import Record

OnStep = Callable[[int, State], None]
"""Called after every step with its number, counted from 1, and the state."""


class Training:
    """The rest of a task's training. `initial` makes the first state and is asked only if none is kept."""

    def __init__(self, record: Record, initial: Callable[[], State]) -> None:
        self.record = record
        if record.size == 0:
            record.append(initial())
        self._state: State = record.state(record.size - 1)

    @property
    def state(self) -> State:
        """The last checkpoint's."""
        return self._state

    @property
    def steps(self) -> int:
        """Steps of the whole task."""
        return self.record.segments * self.record.segment_steps

    @property
    def steps_done(self) -> int:
        """Steps up to the last checkpoint."""
        return (self.record.size - 1) * self.record.segment_steps

    @property
    def done(self) -> bool:
        """Whether all K checkpoints are kept."""
        return self.record.size > self.record.segments

    def segment(self, on_step: OnStep) -> bytes:
        """Train the next segment and keep its checkpoint; its state root."""
        first = self.steps_done
        state = self._state
        for number in range(first + 1, first + self.record.segment_steps + 1):
            state = self.record.executor.step(state, number)
            on_step(number, state)
        root = self.record.append(state)
        self._state = state
        return root
