"""The output of `assay watch`: lines for people, or lines of JSON for programs. On a terminal, the last line
shows the progress and is rewritten.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from assay.watching.callbacks import Callback, Told
from assay.watching.curve import Point
from assay.watching.progress import Progress
from protocol.node.output import Output

_CLEAR: Final = "\r\x1b[K"
_DAY: Final = 86_400


class Printer:
    """Prints to a command's output. `terminal` says whether the output is a terminal; if it is not, nothing
    is rewritten. Metrics also go to `callbacks`.
    """

    def __init__(
        self, output: Output, terminal: bool | None = None, callbacks: Sequence[Callback] = ()
    ) -> None:
        self._told = Told()
        for callback in callbacks:
            self._told.add(callback)
        self._output = output
        stream = sys.stderr if output.as_json else sys.stdout
        self.terminal = stream.isatty() if terminal is None else terminal
        self._stream = stream
        self._shown = ""

    def line(self, kind: str, text: str, time: int | None = None, **data: Any) -> None:
        """Print an event that happened at the chain's `time`. In JSON, the line also has `kind` and `data`."""
        self._clear()
        self._output.say(text if time is None else f"{clock(time)}  {text}")
        told: Mapping[str, Any] = {"kind": kind, "time": time, "text": text.strip(), **data}
        self._output.line(told)

    @property
    def refreshes(self) -> bool:
        """Whether the last line is rewritten."""
        return self.terminal

    def points(self, points: Sequence[Point]) -> None:
        """Print checked metrics, except on a terminal, where the curve shows them. Then call the callbacks."""
        for point in () if self.terminal else points:
            self.line(
                "metrics",
                f"  {point.words}; as committed",
                segment=point.segment,
                step=point.step,
                state_root=point.root,
                metrics=dict(point.values),
                verified=True,
            )
        self._told.take(points)
        self._told.tell()

    def progress(self, progress: Progress) -> None:
        """On a terminal, show the task's progress in the last line."""
        self.state(progress.words)

    def state(self, text: str) -> None:
        """On a terminal, show `text`, the task's current state, in the last line."""
        if self.terminal and text != self._shown:
            self._stream.write(_CLEAR + text)
            self._stream.flush()
            self._shown = text

    def end(self) -> None:
        """Remove the line that is rewritten, so that only complete lines remain."""
        self._clear()

    def _clear(self) -> None:
        if self._shown:
            self._stream.write(_CLEAR)
            self._stream.flush()
            self._shown = ""


def clock(time: int) -> str:
    """Format `time`, which the chain gives in seconds, as local time. The text includes the date if the time
    is a day or more away from now.
    """
    at, now = datetime.fromtimestamp(time), datetime.now()
    return at.strftime("%H:%M:%S" if abs((now - at).total_seconds()) < _DAY else "%Y-%m-%d %H:%M:%S")
