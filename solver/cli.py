"""The command `solver`. Of the heavy packages, only Typer is imported here; each command imports the others
that it needs.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protocol.errors import ExitCode
from protocol.node.commands import SENDS, Flags, add_config, app_of, command
from protocol.node.options import (
    DeviceOption,
    DevicesOption,
    HomeOption,
    JsonOption,
    LogJsonOption,
    MonitorPortOption,
    TasksOption,
    VerboseOption,
    at_home,
)
from solver.operating import add_operating

if TYPE_CHECKING:
    from solver.settings import SolverSettings

app = app_of("Train other people's models for pay: bid, stake, train, commit checkpoints, defend them.")


def main() -> None:
    """Entry point of the console command."""
    app()


def _model() -> type[SolverSettings]:
    from solver.settings import SolverSettings

    return SolverSettings


add_config(app, _model, "solver", "solver config show")
add_operating(app)


@command(app, connection=SENDS)
def run(
    connection: Flags,
    stake: Annotated[
        str | None, typer.Option(help="Tokens to bring into the vault for stakes, of all tasks together.")
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address to serve on.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65_535, help="Port to serve on; 0: any.")] = None,
    url: Annotated[str | None, typer.Option(help="Public address of the service, if another.")] = None,
    publish: Annotated[
        str | None,
        typer.Option(
            help="Where all that others need is written, such as s3://mine/assay, to be read at --url."
        ),
    ] = None,
    monitor_port: MonitorPortOption = None,
    task: TasksOption = None,
    device: DeviceOption = None,
    devices: DevicesOption = None,
    processes: Annotated[
        int | None, typer.Option(min=1, max=64, help="Processes that train together.")
    ] = None,
    home: HomeOption = None,
    once: Annotated[bool, typer.Option("--once", help="Stop after one task.")] = False,
    log_json: LogJsonOption = False,
    verbose: VerboseOption = False,
) -> ExitCode:
    """Find a task, bid, train it, serve and defend it, collect, and start over. Press Ctrl-C once to stop
    after the running segments and the moves that are owed, twice to stop at once.
    """
    from protocol.node.process import importing, keep_memory

    home_folder = at_home(home)
    keep_memory()
    with importing():
        from protocol.chain.accounts import DEVELOPMENT_CHAIN
        from protocol.execution.measured import measured, slowest
        from protocol.node.party.connection import connect_by
        from protocol.node.party.data import earlier_deployments
        from protocol.node.party.starting import start
        from protocol.node.settings import load
        from solver.control import require_alone
        from solver.database import Database
        from solver.gpu import powered, read_gpus
        from solver.machine import machine_of
        from solver.node import SolverNode
        from solver.places import Places, has_own_memory, memory_of, placed
        from solver.progress import Progress
        from solver.settings import SolverSettings
        from solver.strategy import Strategy

    flags = connection | {
        "stake": stake,
        "host": host,
        "port": port,
        "url": url,
        "publish": publish,
        "monitor_port": monitor_port,
        "tasks": tuple(task) if task else None,
        "device": device,
        "devices": devices,
        "processes": processes,
    }
    settings = load(SolverSettings, "solver", home_folder.config, flags).values
    require_alone(home_folder)  # before anything is created there; the node checks again
    started = start(settings, log_json, verbose, settings.training_devices)
    if started.on_gpus:
        settings = powered(settings, read_gpus(), len(started.names))
    places = Places(settings.training_devices, memory_of, has_own_memory)
    strategy = Strategy(executor=placed(started.executors, places))
    progress = Progress(bar=sys.stderr.isatty() and not log_json)
    found = slowest(measured(home_folder, name) for name in started.names.values())
    with connect_by(settings) as client:
        earlier = earlier_deployments(Database, home_folder, client)
        local = client.connection.chain_id == DEVELOPMENT_CHAIN
        node = SolverNode(
            client,
            settings,
            home_folder,
            strategy,
            stop=started.stop,
            progress=progress,
            earlier=earlier,
            machine=machine_of(settings, found, local),
            places=places,
        )
        return node.run(once)


@command(app, connection=("account", "dev_account", "password_file"))
def lane(
    connection: Flags,
    job: Annotated[Path, typer.Argument(help="A job's folder, as `assay split` writes it.")],
    number: Annotated[int, typer.Option(min=0, help="Which of the job's lanes.")],
    members: Annotated[
        Path | None, typer.Option(help="File of members, else members.json of the job.")
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address to serve on.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65_535, help="Port to serve on; 0: any.")] = None,
    publish: Annotated[
        str | None, typer.Option(help="Where messages are written too, such as s3://mine/assay.")
    ] = None,
    device: DeviceOption = None,
    home: HomeOption = None,
    log_json: LogJsonOption = False,
    verbose: VerboseOption = False,
) -> ExitCode:
    """Train one lane of a job, without chain or pay: absorb the other lanes' messages, train, and serve its
    own messages.

    Continues where it was stopped. Serves until Ctrl-C, even after the last round. Also goes on serving if
    another lane has announced different parameters or has signed two states of one round, because the other
    lanes need this lane's announcements to discover the same fault.
    """
    from protocol.node.process import importing, keep_memory

    home_folder = at_home(home)
    keep_memory()
    with importing():
        from protocol.node import logs
        from protocol.node.settings import load
        from solver.lane import LaneSettings
        from solver.lane import run as run_lane

    flags = connection | {"host": host, "port": port, "publish": publish, "device": device}
    settings = load(LaneSettings, "lane", home_folder.config, flags).values
    logs.configure(log_json, verbose)
    return run_lane(home_folder, settings, job, number, members)


@command(app, connection=SENDS)
def withdraw(
    connection: Flags,
    home: HomeOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be sent.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Take all free tokens out of the vault, including those kept for the stake of a task in training;
    `solver run` brings them in again. Also take out the coin earned by answering in games. Refused while
    `solver run` runs with the account and this home folder. Do not use it while `solver run` runs with the
    account and another home folder.
    """
    from protocol.node.output import Output
    from protocol.node.party.connection import connect_by
    from protocol.node.party.funds import withdraw_above, withdraw_credit
    from protocol.node.settings import load
    from protocol.node.words import coin, tokens
    from solver.settings import SolverSettings

    settings = load(SolverSettings, "solver", at_home(home).config, connection).values
    output = Output("solver withdraw", as_json)
    with connect_by(settings) as client:
        if dry_run:
            amount, receipt = client.vault.free(client.address), None
            wei = client.game.credit(client.address)
        else:
            amount, receipt = withdraw_above(client, 0)
            wei, _ = withdraw_credit(client)
        done = "would withdraw" if dry_run else "withdrew"
        output.say(f"{done} {tokens(amount)} to {client.address}")
        if wei:
            output.say(f"{done} {coin(wei)}, for answers in games")
        transaction = None if receipt is None else receipt.transaction
        output.result(
            {"account": client.address, "units": str(amount), "wei": str(wei), "transaction": transaction}
        )
