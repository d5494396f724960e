"""How a task is shown while its handle waits: at a terminal as lines like those of `assay watch`, in a
notebook as one output that is rewritten again and again.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from assay.watching.callbacks import Told
from assay.watching.curve import Point
from assay.watching.printing import Printer, clock
from assay.watching.progress import Listener, Progress
from protocol.node.output import Output

SHOWN: Final = 12
"""Number of events in a notebook's output, above the line that shows the progress."""


class Page:
    """The output of a notebook cell: the latest events, and below them the task's progress."""

    refreshes: bool = True

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._lines: deque[str] = deque(maxlen=SHOWN)
        self._last = ""

    def line(self, kind: str, text: str, time: int | None = None, **_data: Any) -> None:  # noqa: ARG002
        """Add an event."""
        self._lines.append(text if time is None else f"{clock(time)}  {text}")
        self._write()

    def points(self, points: Sequence[Point]) -> None:
        """Does nothing: metrics appear in the curve instead."""

    def progress(self, progress: Progress) -> None:
        """Show the task's progress."""
        self.state(progress.words)

    def state(self, text: str) -> None:
        """Show `text`, the task's current state, as the last line."""
        if text != self._last:
            self._last = text
            self._write()

    def _write(self) -> None:
        self._show("\n".join([*self._lines, self._last]))


def notebook_page() -> Page | None:
    """A page in the running notebook cell, shown through IPython. None outside a notebook's kernel."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    shown = sys.modules["IPython.display"].display({"text/plain": ""}, raw=True, display_id=True)

    def show(text: str) -> None:
        shown.update({"text/plain": text}, raw=True)

    return Page(show)


class Relay:
    """Receives all events of a task, and passes them to the display while the handle waits. Events that occur
    at other times are kept until the handle waits again.
    """

    def __init__(self) -> None:
        self.told = Told()
        self._kept: list[tuple[str, str, int | None, dict[str, Any]]] = []
        self._shown: Listener | None = None
        self._on_progress: Callable[[Progress], object] | None = None
        self._waits = False

    @property
    def refreshes(self) -> bool:
        """Whether the display, or the function `on_progress`, wants the progress each second."""
        return self._on_progress is not None or (self._shown is not None and self._shown.refreshes)

    def begin(self, shown: Listener | None, on_progress: Callable[[Progress], object] | None) -> None:
        """Begin to pass on events, the kept ones first. Called when the handle begins to wait."""
        self._shown, self._on_progress, self._waits = shown, on_progress, True
        kept, self._kept = self._kept, []
        for kind, text, time, data in kept:
            self.line(kind, text, time, **data)
        self.told.tell()

    def end(self) -> None:
        """Stop passing on events, and keep further ones. Called when the handle no longer waits."""
        if isinstance(self._shown, Printer):
            self._shown.end()
        self._shown = self._on_progress = None
        self._waits = False

    def line(self, kind: str, text: str, time: int | None = None, **data: Any) -> None:
        """Pass on an event, or keep it if the handle does not wait."""
        if not self._waits:
            self._kept.append((kind, text, time, data))
        elif self._shown is not None:
            self._shown.line(kind, text, time, **data)

    def points(self, points: Sequence[Point]) -> None:
        """Keep checked metrics for the callbacks. While the handle waits, also pass the metrics on and call
        the callbacks.
        """
        self.told.take(points)
        if self._waits:
            if self._shown is not None:
                self._shown.points(points)
            self.told.tell()

    def progress(self, progress: Progress) -> None:
        """Pass on the task's progress."""
        if self._shown is not None:
            self._shown.progress(progress)
        if self._on_progress is not None:
            self._on_progress(progress)

    def state(self, text: str) -> None:
        """Pass on `text`, the task's current state."""
        if self._shown is not None:
            self._shown.state(text)


def display_of(output: Output) -> Listener:
    """A notebook's page if there is one, otherwise a printer of lines."""
    return notebook_page() or Printer(output)
