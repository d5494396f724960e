"""A bar on stderr for people at a terminal, by rich, which is imported when one is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress


def progress_bar(before: str, after: str, *, elapsed: bool = False) -> Progress:
    """A bar between two texts, with how many of how many and the time that is left; with `elapsed` the time so far too.

    The texts are format strings of rich's `task`: "{task.description}", or "{task.fields[name]}" for what `add_task`
    and `update` are given.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns: list[ProgressColumn] = [TextColumn(before), BarColumn(), MofNCompleteColumn(), TextColumn(after)]
    if elapsed:
        columns.append(TimeElapsedColumn())
    return Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True))
