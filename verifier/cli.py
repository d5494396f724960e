"""The command `verifier`. Only Typer is imported here; everything heavy is imported by the command that needs it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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

if TYPE_CHECKING:
    from protocol.chain.client import Client
    from verifier.settings import VerifierSettings

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # rich takes half of the time of --help
    pretty_exceptions_enable=False,
    help="Replay other people's training for a fee: stake, get drawn, replay, attest, and challenge what is false.",
)
config = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Settings and where they come from.")
app.add_typer(config, name="config")


def main() -> None:
    """Entry point of the console command."""
    app()


@app.command()
def watch(
    stake_slots: Annotated[
        int | None, typer.Option(min=0, help="Units of stake to lock; each is a chance in every draw.")
    ] = None,
    whistleblow: Annotated[
        bool | None, typer.Option("--whistleblow/--no-whistleblow", help="Replay every submitted segment.")
    ] = None,
    rpc: RpcOption = None,
    account: AccountOption = None,
    dev_account: DevAccountOption = None,
    password_file: PasswordOption = None,
    deployment: DeploymentOption = None,
    task: TasksOption = None,
    device: DeviceOption = None,
    home: HomeOption = None,
    once: Annotated[bool, typer.Option("--once", help="Stop when the tasks are over.")] = False,
    log_json: LogJsonOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Register, replay what one is drawn for, attest or challenge, collect. Ctrl-C once to stop, twice at once.

    With --once the exit code is 3 if a solver was found false, or an own challenge was lost.
    """
    with reported():
        flags = {
            "stake_slots": stake_slots,
            "whistleblow": whistleblow,
            "tasks": tuple(task) if task else None,
            "device": device,
            **_connection(rpc, account, dev_account, password_file, deployment),
        }
        code = _watch(at_home(home), flags, once, log_json, verbose)
    raise typer.Exit(int(code))


@app.command()
def resign(
    rpc: RpcOption = None,
    account: AccountOption = None,
    dev_account: DevAccountOption = None,
    password_file: PasswordOption = None,
    deployment: DeploymentOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Leave later draws; the stake unbonds. Duties already drawn stay: let `watch` run until they are done."""
    with reported():
        flags = _connection(rpc, account, dev_account, password_file, deployment)
        with _client(_settings(at_home(home), flags)) as client:
            from protocol.node.output import Output

            receipt = client.audit.resign()
            period = client.deployment.parameters.unbonding_period
            output = Output("verifier resign", as_json)
            output.say(f"resigned; `verifier withdraw` gives the stake back in {period} s")
            output.result(
                {"account": client.address, "unbonding_seconds": period, "transaction": receipt.transaction}
            )


@app.command()
def withdraw(
    rpc: RpcOption = None,
    account: AccountOption = None,
    dev_account: DevAccountOption = None,
    password_file: PasswordOption = None,
    deployment: DeploymentOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take everything out of the vault that is free, with stakes whose unbonding is over. Not while `watch` runs."""
    with reported():
        flags = _connection(rpc, account, dev_account, password_file, deployment)
        with _client(_settings(at_home(home), flags)) as client:
            from protocol.chain.parameters import TOKEN
            from protocol.node.output import Output
            from verifier.funds import finish_unbonding, withdraw_above

            finished = finish_unbonding(client)
            amount = withdraw_above(client, 0)
            output = Output("verifier withdraw", as_json)
            output.say(f"{amount / TOKEN:g} tokens taken out; {finished} stakes had unbonded")
            output.result({"account": client.address, "units": str(amount), "unbonded": finished})


@config.command("show")
def config_show(
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Every setting of `verifier watch`, its value and its source."""
    from protocol.node.output import Output
    from protocol.node.settings import load
    from verifier.settings import VerifierSettings

    with reported():
        rows = load(VerifierSettings, "verifier", at_home(home).config, {}).rows()
        output = Output("verifier config show", as_json)
        for name, value, source in rows:
            output.say(f"{name:15} {value:30} {source}")
        output.result([{"name": name, "value": value, "source": source} for name, value, source in rows])


def _connection(
    rpc: str | None,
    account: str | None,
    dev_account: int | None,
    password_file: Path | None,
    deployment: Path | None,
) -> dict[str, object | None]:
    """The settings that say where the chain is and who sends."""
    name = chosen_account(account, dev_account)
    return {"rpc": rpc, "account": name, "password_file": password_file, "deployment": deployment}


def _settings(home: Home, flags: dict[str, object | None]) -> VerifierSettings:
    from protocol.node.settings import load
    from verifier.settings import VerifierSettings

    return load(VerifierSettings, "verifier", home.config, flags).values


def _client(settings: VerifierSettings) -> Client:
    from protocol.chain.client import connect

    return connect(settings.rpc, settings.deployment, settings.account, password_file=settings.password_file)


def _watch(
    home: Home, flags: dict[str, object | None], once: bool, log_json: bool, verbose: bool
) -> ExitCode:
    from protocol.node.process import importing, keep_memory

    keep_memory()
    with importing():
        from protocol.execution.device import checked, executor_on
        from protocol.node import logs
        from protocol.node.stopping import Stop
        from protocol.numerics.self_check import self_check
        from verifier.node import VerifierNode
        from verifier.strategy import Strategy

    settings = _settings(home, flags)
    logs.configure(log_json, verbose)
    self_check()
    strategy = Strategy(executor=executor_on(checked(settings.device)))
    stop = Stop()
    stop.on_signals()
    with _client(settings) as client:
        return VerifierNode(client, settings, home, strategy, stop=stop).run(once)
