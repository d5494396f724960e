"""This machine's speed for each program, in operations a second, measured by timing the program's steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock
from typing import Final

STEPS: Final = 10
"""Number of steps after which a program counts as measured. The first steps compile and test kernels."""
PROGRAMS: Final = 256
"""Maximum number of programs whose speeds are kept."""


class Speeds:
    """The speeds of the programs whose steps this process runs. A program's speed is that of its fastest
    step, because other work slowed down the other steps. Admission uses only a third of this speed, because
    the machine also does other work. Traces are not timed, and may be slower than steps
    (`protocol.tasks.owed.Traces`). Callable from any thread.
    """

    def __init__(self) -> None:
        self._steps: dict[bytes, tuple[int, float]] = {}
        self._expected: dict[bytes, float] = {}
        self._lock = Lock()

    def of(self, program: bytes, operations: int) -> Callable[[float], None]:
        """A callback for the steps of a program. Call it after each step with the number of seconds that the
        step took. Each step of the program has `operations` operations.
        """

        def note(seconds: float) -> None:
            with self._lock:
                steps, most = self._steps.pop(program, (0, 0.0))
                # Inserted at the end: the least recently timed is dropped first.
                self._steps[program] = steps + 1, max(most, operations / max(seconds, 1e-9))
                if len(self._steps) > PROGRAMS:
                    del self._steps[next(iter(self._steps))]

        return note

    def expect(self, program: bytes, speed: float) -> None:
        """Set the speed, in operations a second, to assume for a program until its own steps are measured."""
        with self._lock:
            self._expected.pop(program, None)
            self._expected[program] = speed
            if len(self._expected) > PROGRAMS:
                del self._expected[next(iter(self._expected))]

    def measured(self) -> Mapping[bytes, float]:
        """Operations a second by program id: the measured speed, or the expected speed if the program was not
        measured.
        """
        with self._lock:
            own = {program: most for program, (steps, most) in self._steps.items() if steps >= STEPS}
            return {**self._expected, **own}
