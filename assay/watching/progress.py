"""A task's progress, and who is told of it while it is watched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from assay.watching.curve import Point


@dataclass(frozen=True, slots=True)
class Progress:
    """A task's progress. `next` says what it waits for, `seconds_left` how long at most, None where no time runs;
    `curve` is the loss as a line of blocks, empty where none was read.
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
        """For people, in one line."""
        done = f"{self.checkpoints} of {self.segments} segments"
        parts = [f"task {self.task}: {self.status}", done, self.curve, self.next]
        return " · ".join(part for part in parts if part)


class Listener(Protocol):
    """Is told what happens to a task."""

    @property
    def refreshes(self) -> bool:
        """Whether it wants the progress each second."""

    def line(self, kind: str, text: str, time: int | None = None, **data: Any) -> None:
        """One thing that happened, at the chain's `time`; programs get `kind` and `data` too."""

    def points(self, points: Sequence[Point]) -> None:
        """Metrics that were checked, in the order of their steps."""

    def progress(self, progress: Progress) -> None:
        """How far it has come now."""

    def state(self, text: str) -> None:
        """What is waited for now."""
