"""The command `sim`. Each command imports the heavy modules that it needs; all commands share only Typer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protocol.errors import ExitCode
from protocol.node.commands import app_of, command

if TYPE_CHECKING:
    from protocol.node.output import Output
    from sim.commands import Asked

app = app_of(
    "Does cheating pay, does checking stop, do honest parties lose? Studies of the protocol's economics."
)

EXTRA = ("matplotlib", "pyarrow", "SALib")
"""Packages that the extra `sim` of pyproject.toml installs; `sim replay` does not need them."""

StudyArgument = Annotated[
    str, typer.Argument(help="A study that `sim list` shows, or a Python file with one.")
]
RunsOption = Annotated[int | None, typer.Option(min=1, help="Runs of each point, else the study's own.")]
RoundsOption = Annotated[int | None, typer.Option(min=1, help="Tasks of each run, else the study's own.")]
SeedOption = Annotated[int, typer.Option(min=0, help="All random numbers follow from it.")]
OutOption = Annotated[Path | None, typer.Option(help="Folder of the results, else build/sim/<study>.")]
FreshOption = Annotated[bool, typer.Option("--fresh", help="Replace results of another question.")]
JobsOption = Annotated[int | None, typer.Option(min=1, max=1024, help="Processes, else one for each core.")]
RayOption = Annotated[str | None, typer.Option(help="Play on this Ray cluster; 'local' starts one.")]
StrictOption = Annotated[bool, typer.Option("--strict", help="End with 2 when a claim does not hold.")]
JsonOption = Annotated[bool, typer.Option("--json", help="A versioned JSON envelope on stdout.")]


def main() -> None:
    """Entry point of the console command."""
    app()


@command(app, "list")
def list_studies(
    parameters: Annotated[
        bool, typer.Option("--parameters", help="What --param can name, with units.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show the studies and the questions that they answer."""
    with _studying():
        from sim import commands

        output = _output("list", as_json)
        if parameters:
            commands.show_parameters(output)
        else:
            commands.show_studies(output)


@command(app)
def run(
    study: Annotated[
        str, typer.Argument(help="A study that `sim list` shows, a Python file with one, or 'all'.")
    ],
    param: Annotated[
        list[str] | None, typer.Option(help="name=value (repeatable); amounts in tokens.")
    ] = None,
    runs: RunsOption = None,
    rounds: RoundsOption = None,
    seed: SeedOption = 0,
    out: OutOption = None,
    fresh: FreshOption = False,
    jobs: JobsOption = None,
    ray: RayOption = None,
    strict: StrictOption = False,
    as_json: JsonOption = False,
) -> ExitCode:
    """Play a study over its own grid and write its report. If an earlier run was interrupted, continue where
    it stopped.
    """
    with _studying():
        from sim.commands import Asked

        asked = Asked(study, tuple(param or ()), runs, rounds, seed, out, fresh, jobs, ray)
        return _play(asked, _output("run", as_json), strict, sweeping=False)


@command(app)
def sweep(
    study: StudyArgument,
    param: Annotated[
        list[str] | None,
        typer.Option(
            help="name=values (repeatable): a,b,c; a:b; a:b:n for n values; a:b:nlog in equal ratios."
        ),
    ] = None,
    runs: RunsOption = None,
    rounds: RoundsOption = None,
    seed: SeedOption = 0,
    out: OutOption = None,
    fresh: FreshOption = False,
    jobs: JobsOption = None,
    ray: RayOption = None,
    strict: StrictOption = False,
    as_json: JsonOption = False,
) -> ExitCode:
    """Play a study over every combination of the given values and its own grid. If an earlier sweep was
    interrupted, continue where it stopped, as `sim run` does.
    """
    with _studying():
        from sim.commands import Asked

        asked = Asked(study, tuple(param or ()), runs, rounds, seed, out, fresh, jobs, ray)
        return _play(asked, _output("sweep", as_json), strict, sweeping=True)


@command(app)
def report(
    folder: Annotated[Path, typer.Argument(help="A folder of results, or one that holds such.")] = Path(
        "build/sim"
    ),
    as_json: JsonOption = False,
) -> None:
    """Write the reports again, from the rows already in the folder."""
    with _studying():
        from sim import commands

        commands.write_reports(folder, _output("report", as_json))


@command(app)
def replay(
    scenario: Annotated[str | None, typer.Argument(help="A scenario; without one, all are shown.")] = None,
    tasks: Annotated[int | None, typer.Option(min=1, max=1_000, help="Tasks in a row, of a market.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of the agents, of a market.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Play a scenario on the real contracts, on its own anvil, and compare every balance with the engine's.

    Exits with 3 if the engine and the contracts differ.
    """
    from sim.replay import command as replaying

    output = _output("replay", as_json)
    if scenario is None:
        replaying.show_scenarios(output)
    else:
        replaying.run(scenario, tasks, seed, output)


@contextmanager
def _studying() -> Iterator[None]:
    """A context for code that needs the packages of the extra `sim`, which operators need not install. Raises
    ExtraMissing if one of them is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        from sim.errors import ExtraMissing

        if error.name is None or error.name.split(".")[0] not in EXTRA:
            raise
        raise ExtraMissing(
            "studies", expected=f"the package {error.name}", got="none", remedy="pip install 'assay[sim]'"
        ) from error


def _play(asked: Asked, output: Output, strict: bool, *, sweeping: bool) -> ExitCode:
    from sim import commands

    if asked.study == "all" and not sweeping:
        holds = commands.play_all(asked, output)
    else:
        holds = commands.play(asked, output, sweeping=sweeping)
    return ExitCode.HOPELESS if strict and not holds else ExitCode.FINE


def _output(command: str, as_json: bool) -> Output:
    from protocol.node.output import Output

    return Output(command, as_json)
