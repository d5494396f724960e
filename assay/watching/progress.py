"""A task's progress, and the interface of a listener that is told of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from assay.watching.curve import Point


@dataclass(frozen=True, slots=True)
class Progress:
    """A task's progress. `next` says what the task waits for, and `seconds_left` how long this can take at
    most; None if there is no deadline. `curve` shows the loss as a line of block characters; it is empty if
    no loss was read.
    """

    task: int
    status: str
    checkpoints: int
    segments: int
    next: str
    seconds_left: int | None
    curve: str

    @property
    def words(self) -> str:
        """The progress in one line of words."""
        done = f"{self.checkpoints} of {self.segments} segments"
        parts = [f"task {self.task}: {self.status}", done, self.curve, self.next]
        return " · ".join(part for part in parts if part)


class Listener(Protocol):
    """Receives reports of what happens to a task."""

    @property
    def refreshes(self) -> bool:
        """Whether the listener wants the progress each second."""

    def line(self, kind: str, text: str, time: int | None = None, **data: Any) -> None:
        """Report an event that happened at the chain's `time`. `kind` and `data` are for programs."""

    def points(self, points: Sequence[Point]) -> None:
        """Report checked metrics, in the order of their steps."""

    def progress(self, progress: Progress) -> None:
        """Report the task's progress."""

    def state(self, text: str) -> None:
        """Report `text`, the task's current state."""
