"""Commands for several machines that train one model: `assay split` and `assay plan`. They need no chain.

Typer is the only third-party package imported at the top; each command imports what else it needs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assay.options import FileArgument, context_of
from protocol.node.commands import command
from protocol.node.options import HomeOption, JsonOption


def add_lanes(app: typer.Typer) -> None:
    """Add the commands `split` and `plan` to `app`."""
    for function in (plan, split):
        command(app)(function)


def split(
    file: FileArgument,
    output: Annotated[Path, typer.Option(help="A new or empty folder for the job.")],
    lanes: Annotated[int, typer.Option(min=1, help="How many machines train the model together.")] = 4,
    density: Annotated[
        str, typer.Option(help="Part of the parameters that a message holds: 1, 1/8, 1/16, 1/32 or 1/64.")
    ] = "1/8",
    inner_steps: Annotated[int, typer.Option(min=1, help="Steps between two exchanges.")] = 5,
    rate: Annotated[float, typer.Option(help="How far the mean of all messages moves the model.")] = 1.0,
    most_exponent: Annotated[
        int, typer.Option(help="No message moves a parameter by 2 to this or more; garbage does as much.")
    ] = 0,
    steps: Annotated[
        int | None, typer.Option(min=1, max=10**6, help="Steps of each lane, else all of the task's.")
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Turn a task into a job of several lanes, for `solver lane`. Runs the file's own Python source. Needs no
    chain.
    """
    from assay import splitting

    context = context_of("split", home, as_json)
    splitting.split(context, file, output, lanes, density, inner_steps, rate, most_exponent, steps)


def plan(
    file: FileArgument,
    lanes: Annotated[str, typer.Option(help="Numbers of machines to choose from.")] = "2,4,8",
    links: Annotated[
        str,
        typer.Option(help="Mbit/s of each machine, or down/up; one for all, or a list such as 100/20,1000."),
    ] = "100",
    speeds: Annotated[
        str, typer.Option(help="Beside this machine, one for all or a list such as 1,1,0.25.")
    ] = "1",
    bucket: Annotated[
        bool, typer.Option("--bucket", help="Each machine uploads once, and the others read there.")
    ] = False,
    trip: Annotated[
        float, typer.Option(min=0, max=10_000, help="Milliseconds of a question and its answer.")
    ] = 50.0,
    share: Annotated[
        float, typer.Option(min=0, max=1, help="Part of the time that communication may take.")
    ] = 0.1,
    everything: Annotated[
        bool, typer.Option("--any", help="Also schedules that train worse than one machine.")
    ] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find the schedule with which a task's training ends first, and what it costs. A schedule is a number of
    machines, a number of steps per round and a message density.

    Measures the file's step on this machine. If links or speeds are given as a list, W machines use the first
    W of its entries. Needs no chain.
    """
    from assay import planning

    choices = planning.Choices(lanes, links, speeds, bucket, trip, share, everything)
    planning.plan(context_of("plan", home, as_json), file, choices)
