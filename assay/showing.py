"""`assay status`: reports of tasks, once or repeatedly, for people or programs. Imported only when the
command runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from assay.status import open_tasks, report
from assay.task_status import TaskStatusReport
from protocol.chain.client import Client
from protocol.chain.errors import RpcError
from protocol.node.settings import SettingsError
from protocol.node.stopping import Stop

if TYPE_CHECKING:
    from assay.commands import Context

LONGEST_PAUSE: Final = 10.0
SHORTEST_PAUSE: Final = 1.0
"""Minimum seconds between two times at which the chain is read."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What to print: lines for people, reports for JSON, and whether the requested task is over."""

    lines: tuple[str, ...]
    reports: tuple[TaskStatusReport, ...]
    is_over: bool


def show(context: Context, task: int | None, past: bool = False) -> None:
    """Print the state of one task, or of all open tasks; with `past`, also of tasks that are over. If no
    setting names a deployment, all known deployments of the chain are included.
    """
    with context.client() as client:
        shown = _look(context, _places(context, client), task, past)
    for line in shown.lines:
        context.output.say(line)
    context.output.result([asdict(found) for found in shown.reports])


def watch(context: Context, task: int | None, past: bool = False) -> None:
    """Print the state again about once a block, until Ctrl-C or, for a single task, until it is over.
    Without a terminal, the state is printed only when it has changed. Raises SettingsError with `--json`.
    """
    if context.output.as_json:
        raise SettingsError(
            expected="--watch or --json",
            got="both",
            remedy="a script asks again with --json whenever it likes",
        )
    stop = Stop()
    stop.on_signals()
    with context.client() as client, _drawing(context) as draw:
        places = _places(context, client)
        pause = min(LONGEST_PAUSE, max(SHORTEST_PAUSE, client.connection.block_time))
        shown = _look(context, places, task, past)
        draw(shown.lines)
        while not shown.is_over and not stop.wait(pause):
            try:
                shown = _look(context, places, task, past)
                draw(shown.lines)
            except RpcError as error:
                draw((*shown.lines, f"waiting for the chain: {error}"))


@contextmanager
def _drawing(context: Context) -> Iterator[Callable[[tuple[str, ...]], None]]:
    """A function that shows lines: on a terminal it redraws them in place, elsewhere it prints them when they
    change.
    """
    if not sys.stdout.isatty():
        last: list[tuple[str, ...]] = []

        def print_changes(lines: tuple[str, ...]) -> None:
            if [lines] != last:
                last[:] = [lines]
                context.output.say("\n".join(lines))

        yield print_changes
        return
    from rich.live import Live
    from rich.text import Text

    with Live(auto_refresh=False) as live:
        yield lambda lines: live.update(Text("\n".join(lines)), refresh=True)


def _places(context: Context, client: Client) -> list[Client]:
    """One client for each deployment that is read; `client` comes first."""
    return [client, *(client.for_deployment(one) for one in context.others(client))]


def _look(context: Context, places: list[Client], task: int | None, past: bool) -> Shown:
    """Read the chain once, and return what to print. Raises ChainError (Reverted: UnknownTask)."""
    lines: list[str] = []
    reports: list[TaskStatusReport] = []
    brief, over = task is None and not context.output.as_json, 0
    having = [place for place in places if task is None or task <= place.market.tasks()]
    for place in having or places[:1]:
        tasks, counted = _tasks(place, task, past)
        over += counted
        found = report(place, tasks, brief=brief)
        if len(places) > 1 and found:
            said = f"contracts with the market at {place.market.address}"
            lines.append(f"{said}, arithmetic {place.deployment.arithmetic}:")
        for one in found:
            lines += [one.brief()] if brief and one.is_over else one.lines()
        reports += found
    if over and not past:
        which, them = ("task is", "it") if over == 1 else ("tasks are", "them")
        lines.append(f"{over:,} {which} over: `assay status --past` shows {them} too")
    elif not reports:
        lines.append("no task was posted yet")
    is_over = task is not None and all(one.is_over for one in reports)
    return Shown(tuple(lines), tuple(reports), is_over)


def _tasks(place: Client, task: int | None, past: bool) -> tuple[list[int], int]:
    """The tasks that are reported for one deployment, and the number of the deployment's tasks that are over.
    That number is 0 if `task` is given.
    """
    if task is not None:
        return [task], 0
    tasks, count = open_tasks(place)
    return list(range(1, count + 1)) if past else tasks, count - len(tasks)
