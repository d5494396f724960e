"""The command `solver`. Only Typer is imported here; everything heavy is imported by the command that needs it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from protocol.errors import ExitCode
from protocol.node.exits import reported
from protocol.node.home import Home
from protocol.node.options import (
    AccountOption,
    DeploymentOption,
    DevAccountOption,
    DeviceOption,
    HomeOption,
    JsonOption,
    LogJsonOption,
    PasswordOption,
    RpcOption,
    TasksOption,
    VerboseOption,
    at_home,
    chosen_account,
)

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # rich takes half of the time of --help
    pretty_exceptions_enable=False,
    help="Train other people's models for pay: bid, stake, train, commit checkpoints, defend them.",
)
config = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Settings and where they come from.")
app.add_typer(config, name="config")


def main() -> None:
    """Entry point of the console command."""
    app()


@app.command()
def run(
    stake: Annotated[str | None, typer.Option(help="Tokens to put behind one's work.")] = None,
    rpc: RpcOption = None,
    account: AccountOption = None,
    dev_account: DevAccountOption = None,
    password_file: PasswordOption = None,
    deployment: DeploymentOption = None,
    host: Annotated[str | None, typer.Option(help="Address to serve on.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65_535, help="Port to serve on; 0: any.")] = None,
    url: Annotated[str | None, typer.Option(help="Public address of the service, if another.")] = None,
    task: TasksOption = None,
    device: DeviceOption = None,
    processes: Annotated[
        int | None, typer.Option(min=1, max=64, help="Processes that train together.")
    ] = None,
    home: HomeOption = None,
    once: Annotated[bool, typer.Option("--once", help="Stop after one task.")] = False,
    log_json: LogJsonOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Find a task, bid, train it, serve and defend it, collect; then the next. Ctrl-C once to stop, twice at once."""
    with reported():
        flags = _connection_flags(rpc, account, dev_account, password_file, deployment) | {
            "stake": stake,
            "host": host,
            "port": port,
            "url": url,
            "tasks": tuple(task) if task else None,
            "device": device,
            "processes": processes,
        }
        code = _run(at_home(home), flags, once, log_json, verbose)
    raise typer.Exit(int(code))


@app.command()
def withdraw(
    rpc: RpcOption = None,
    account: AccountOption = None,
    dev_account: DevAccountOption = None,
    password_file: PasswordOption = None,
    deployment: DeploymentOption = None,
    home: HomeOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be sent.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Take all free tokens, the stake of finished tasks among them, out of the vault. Not while `solver run` runs."""
    with reported():
        flags = _connection_flags(rpc, account, dev_account, password_file, deployment)
        _withdraw(at_home(home), flags, dry_run, as_json)


@config.command("show")
def config_show(
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Every setting of `solver run`, its value and its source."""
    from protocol.node.output import Output
    from protocol.node.settings import load
    from solver.settings import SolverSettings

    with reported():
        place = at_home(home)
        rows = load(SolverSettings, "solver", place.config, {}).rows()
        output = Output("solver config show", as_json)
        for name, value, source in rows:
            output.say(f"{name:15} {value:30} {source}")
        output.result([{"name": name, "value": value, "source": source} for name, value, source in rows])


def _connection_flags(
    rpc: str | None,
    account: str | None,
    dev_account: int | None,
    password_file: Path | None,
    deployment: Path | None,
) -> dict[str, object | None]:
    """The settings that say whom to talk to, and as whom."""
    name = chosen_account(account, dev_account)
    return {"rpc": rpc, "account": name, "password_file": password_file, "deployment": deployment}


def _run(home: Home, flags: dict[str, object | None], once: bool, log_json: bool, verbose: bool) -> ExitCode:
    from protocol.node.process import importing, keep_memory

    keep_memory()
    with importing():
        from protocol.chain.client import connect
        from protocol.execution.device import checked, executor_on
        from protocol.node import logs
        from protocol.node.settings import load
        from protocol.node.stopping import Stop
        from protocol.numerics.self_check import self_check
        from solver.node import SolverNode
        from solver.progress import Progress
        from solver.settings import SolverSettings
        from solver.strategy import Strategy

    settings = load(SolverSettings, "solver", home.config, flags).values
    logs.configure(log_json, verbose)
    self_check()
    strategy = Strategy(executor=executor_on(checked(settings.device)))
    stop = Stop()
    stop.on_signals()
    progress = Progress(bar=sys.stderr.isatty() and not log_json)
    with connect(
        settings.rpc, settings.deployment, settings.account, password_file=settings.password_file
    ) as client:
        return SolverNode(client, settings, home, strategy, stop=stop, progress=progress).run(once)


def _withdraw(home: Home, flags: dict[str, object | None], dry_run: bool, as_json: bool) -> None:
    from protocol.chain.client import connect
    from protocol.chain.parameters import TOKEN
    from protocol.node.output import Output
    from protocol.node.settings import load
    from solver.settings import SolverSettings

    settings = load(SolverSettings, "solver", home.config, flags).values
    output = Output("solver withdraw", as_json)
    with connect(
        settings.rpc, settings.deployment, settings.account, password_file=settings.password_file
    ) as client:
        amount = client.vault.free(client.address)
        transaction = None
        if amount and not dry_run:
            transaction = client.vault.withdraw(amount).transaction
        done = "would withdraw" if dry_run else "withdrew"
        output.say(f"{done} {amount / TOKEN:g} tokens to {client.address}")
        output.result({"account": client.address, "units": str(amount), "transaction": transaction})
