"""A progress bar on stderr for people at a terminal. It imports rich only when a bar is made."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress


def progress_bar(before: str, after: str, *, elapsed: bool = False, deadline: bool = False) -> Progress:
    """A bar between two texts, with the count and the remaining time. With `elapsed` it also shows the time
    so far. With `deadline` it also shows the time left until the task's field `due`, which is a time by
    `time.monotonic`. When the bar is stopped, it disappears from a terminal; elsewhere it stays as a line.

    The texts are format strings with rich's `task`: "{task.description}", or "{task.fields[name]}" for a
    field that was passed to `add_task` or `update`.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Due(ProgressColumn):
        """Time until the deadline, in red if the remaining work takes longer."""

        def render(self, task: Task) -> Text:
            due = task.fields.get("due")
            if due is None:
                return Text("")
            left, needed = max(0.0, due - time.monotonic()), task.time_remaining
            late = left == 0.0 or (needed is not None and needed > left)
            return Text(f"due in {timedelta(seconds=int(left))}", "red" if late else "")

    columns: list[ProgressColumn] = [TextColumn(before), BarColumn(), MofNCompleteColumn(), TextColumn(after)]
    if elapsed:
        columns.append(TimeElapsedColumn())
    columns.append(TimeRemainingColumn())
    if deadline:
        columns.append(Due())
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=console.is_terminal)
