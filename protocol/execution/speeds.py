"""How many operations a second this machine manages, program by program, as its steps are timed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock
from typing import Final

STEPS: Final = 10
"""Steps before a program counts as measured: the first ones compile and test kernels."""
PROGRAMS: Final = 256
"""Number of programs that are remembered."""


class Speeds:
    """Of the programs that this process runs. The fastest of all steps counts, because the others were disturbed;
    admission uses a third of it, and leaves the rest to other work. Callable from any thread.
    """

    def __init__(self) -> None:
        self._steps: dict[bytes, tuple[int, float]] = {}
        self._expected: dict[bytes, float] = {}
        self._lock = Lock()

    def of(self, program: bytes, operations: int) -> Callable[[float], None]:
        """A function that is told the seconds of each step of a program of that many operations."""

        def note(seconds: float) -> None:
            with self._lock:
                steps, most = self._steps.pop(program, (0, 0.0))
                # At the end: the oldest goes first.
                self._steps[program] = steps + 1, max(most, operations / max(seconds, 1e-9))
                if len(self._steps) > PROGRAMS:
                    del self._steps[next(iter(self._steps))]

        return note

    def expect(self, program: bytes, speed: float) -> None:
        """The speed that is assumed for a program until its own steps are measured, in operations a second."""
        with self._lock:
            self._expected.pop(program, None)
            self._expected[program] = speed
            if len(self._expected) > PROGRAMS:
                del self._expected[next(iter(self._expected))]

    def measured(self) -> Mapping[bytes, float]:
        """Operations a second by program id, as measured, else as expected."""
        with self._lock:
            own = {program: most for program, (steps, most) in self._steps.items() if steps >= STEPS}
            return {**self._expected, **own}
