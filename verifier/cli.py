"""The command `verifier`. Only Typer is imported here; everything heavy is imported by the command that needs it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protocol.runtime.exits import ExitCode, reported
from protocol.runtime.home import VARIABLE, Home

if TYPE_CHECKING:
    from protocol.chain.client import Client
    from verifier.settings import VerifierSettings

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Replay other people's training for a fee: stake, get drawn, replay, attest, and challenge what is false.",
)
config = typer.Typer(no_args_is_help=True, help="Settings and where they come from.")
app.add_typer(config, name="config")

HomeOption = Annotated[
    Path | None, typer.Option("--home", help="Home folder, else $ASSAY_HOME, else ~/.assay.")
]
RpcOption = Annotated[str | None, typer.Option(help="URL of an Ethereum node.")]
AccountOption = Annotated[str | None, typer.Option(help="Name of an account under the home folder.")]
DevAccountOption = Annotated[
    int | None, typer.Option(min=0, help="Index of a development key; development chains only.")
]
PasswordOption = Annotated[Path | None, typer.Option(help="File whose first line opens the account.")]
DeploymentOption = Annotated[Path | None, typer.Option(help="Deployment file, else that of the chain.")]


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
    task: Annotated[list[int] | None, typer.Option(min=1, help="Only this task (repeatable).")] = None,
    home: HomeOption = None,
    once: Annotated[bool, typer.Option("--once", help="Stop when the tasks are over.")] = False,
    log_json: Annotated[bool, typer.Option("--log-json", help="One JSON object a line on stderr.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Log more.")] = False,
) -> None:
    """Register, replay what one is drawn for, attest or challenge, collect. Ctrl-C once to stop, twice at once.

    With --once the exit code is 3 if a solver was found false, or an own challenge was lost.
    """
    from verifier.errors import known

    with reported(known):
        flags = {
            "stake_slots": stake_slots,
            "whistleblow": whistleblow,
            "tasks": tuple(task) if task else None,
            **_connection(rpc, account, dev_account, password_file, deployment),
        }
        code = _watch(_at_home(home), flags, once, log_json, verbose)
    raise typer.Exit(int(code))


@app.command()
def resign(
    rpc: RpcOption = None,
    account: AccountOption = None,
    dev_account: DevAccountOption = None,
    password_file: PasswordOption = None,
    deployment: DeploymentOption = None,
    home: HomeOption = None,
) -> None:
    """Leave later draws; the stake unbonds. Duties already drawn stay: let `watch` run until they are done."""
    from verifier.errors import known

    with reported(known):
        flags = _connection(rpc, account, dev_account, password_file, deployment)
        with _client(_at_home(home), flags) as client:
            client.audit.resign()
            period = client.deployment.parameters.unbonding_period
    print(f"resigned; `verifier withdraw` gives the stake back in {period} s")


@app.command()
def withdraw(
    rpc: RpcOption = None,
    account: AccountOption = None,
    dev_account: DevAccountOption = None,
    password_file: PasswordOption = None,
    deployment: DeploymentOption = None,
    home: HomeOption = None,
) -> None:
    """Take everything out of the vault that is free, with stakes whose unbonding is over. Not while `watch` runs."""
    from verifier.errors import known

    with reported(known):
        flags = _connection(rpc, account, dev_account, password_file, deployment)
        with _client(_at_home(home), flags) as client:
            from protocol.chain.parameters import TOKEN
            from verifier.funds import finish_unbonding, withdraw_above

            finished = finish_unbonding(client)
            amount = withdraw_above(client, 0)
    print(f"{amount / TOKEN:g} tokens taken out; {finished} stakes had unbonded")


@config.command("show")
def config_show(
    home: HomeOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="A versioned JSON envelope on stdout.")] = False,
) -> None:
    """Every setting of `verifier watch`, its value and its source."""
    from protocol.runtime.output import Output
    from protocol.runtime.settings import load
    from verifier.settings import VerifierSettings

    with reported():
        rows = load(VerifierSettings, "verifier", _at_home(home).config, {}).rows()
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
    if account is not None and dev_account is not None:
        from protocol.runtime.settings import SettingsError

        raise SettingsError("expected --account or --dev-account, got both; leave one out")
    name = f"dev:{dev_account}" if dev_account is not None else account
    return {"rpc": rpc, "account": name, "password_file": password_file, "deployment": deployment}


def _at_home(given: Path | None) -> Home:
    """The home folder; everything below that looks for it finds the same one."""
    home = Home.find(given)
    os.environ[VARIABLE] = str(home.root)
    return home


def _settings(home: Home, flags: dict[str, object | None]) -> VerifierSettings:
    from protocol.runtime.settings import load
    from verifier.settings import VerifierSettings

    return load(VerifierSettings, "verifier", home.config, flags).values


def _client(home: Home, flags: dict[str, object | None]) -> Client:
    from protocol.chain.client import connect

    chosen = _settings(home, flags)
    return connect(chosen.rpc, chosen.deployment, chosen.account, password_file=chosen.password_file)


def _watch(
    home: Home, flags: dict[str, object | None], once: bool, log_json: bool, verbose: bool
) -> ExitCode:
    from protocol.runtime import logs
    from protocol.runtime.stopping import Stop
    from verifier.node import VerifierNode

    logs.configure(log_json, verbose)
    stop = Stop()
    stop.on_signals()
    with _client(home, flags) as client:
        return VerifierNode(client, _settings(home, flags), home, stop=stop).run(once)
