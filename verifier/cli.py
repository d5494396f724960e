"""The command `verifier`. Of the heavy packages, only Typer is imported here; each command imports the
others that it needs.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from protocol.errors import ExitCode
from protocol.node.commands import SENDS, Flags, add_config, app_of, command
from protocol.node.home import Home
from protocol.node.options import (
    MOST_TASK,
    DeviceOption,
    HomeOption,
    JsonOption,
    LogJsonOption,
    MonitorPortOption,
    TasksOption,
    VerboseOption,
    at_home,
)

if TYPE_CHECKING:
    from protocol.chain.client import Client
    from verifier.settings import VerifierSettings

app = app_of(
    "Replay other people's training for a fee: stake, be seated, replay, attest, and challenge what is false."
)


def main() -> None:
    """Entry point of the console command."""
    app()


def _model() -> type[VerifierSettings]:
    from verifier.settings import VerifierSettings

    return VerifierSettings


add_config(app, _model, "verifier", "verifier config show")


@command(app, connection=SENDS)
def watch(
    connection: Flags,
    further_account: Annotated[
        list[str] | None, typer.Option(help="Account that takes seats beside the other (repeatable).")
    ] = None,
    stake: Annotated[
        str | None, typer.Option(help="Tokens that each account may lock; 0: be in no draw.")
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address to serve results on.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65_535, help="Port to serve on; 0: any.")] = None,
    url: Annotated[str | None, typer.Option(help="Public address of the service, if another.")] = None,
    monitor_port: MonitorPortOption = None,
    whistleblow: Annotated[
        bool | None, typer.Option("--whistleblow/--no-whistleblow", help="Replay every submitted segment.")
    ] = None,
    only_watch: Annotated[
        bool, typer.Option("--only-watch", help="Follow tasks without an account: log, metrics, alerts.")
    ] = False,
    task: TasksOption = None,
    device: DeviceOption = None,
    home: HomeOption = None,
    once: Annotated[bool, typer.Option("--once", help="Stop when the tasks are over.")] = False,
    log_json: LogJsonOption = False,
    verbose: VerboseOption = False,
) -> ExitCode:
    """Register, replay for seats, attest or challenge, serve results, collect. Press Ctrl-C once to stop when
    no move is due, twice to stop at once.

    With --once the exit code is 3 if one of our challenges was won or lost or, with --only-watch, if a solver
    was convicted.
    """
    from protocol.node.process import importing, keep_memory

    home_folder = at_home(home)
    if only_watch:
        chosen = connection | {
            "tasks": tuple(task) if task else None,
            "monitor_port": monitor_port,
            "port": port,
        }
        account = {name: chosen.pop(name) for name in ("account", "password_file")}
        acting = (further_account, stake, host, url, whistleblow, device, *account.values())
        return _only_watch(
            home_folder, chosen, any(given is not None for given in acting), once, log_json, verbose
        )
    keep_memory()
    with importing():
        from protocol.node.party.connection import connect_by
        from protocol.node.party.data import earlier_deployments
        from protocol.node.party.starting import start
        from verifier.database import Database
        from verifier.node import VerifierNode
        from verifier.strategy import Strategy

    flags = connection | {
        "further_accounts": tuple(further_account) if further_account else None,
        "stake": stake,
        "host": host,
        "port": port,
        "url": url,
        "monitor_port": monitor_port,
        "whistleblow": whistleblow,
        "tasks": tuple(task) if task else None,
        "device": device,
    }
    settings = _settings(home_folder, flags)
    started = start(settings, log_json, verbose)
    strategy = Strategy(executor=started.executor)
    with ExitStack() as clients:
        client = clients.enter_context(connect_by(settings))
        further = [
            clients.enter_context(client.for_account(account, password_file=settings.password_file))
            for account in settings.further_accounts
        ]
        earlier = earlier_deployments(Database, home_folder, client)
        node = VerifierNode(
            client, settings, home_folder, strategy, further=further, stop=started.stop, earlier=earlier
        )
        return node.run(once)


def _only_watch(home: Home, flags: Flags, acts: bool, once: bool, log_json: bool, verbose: bool) -> ExitCode:
    from protocol.node import logs
    from protocol.node.party.connection import connect_by
    from protocol.node.settings import SettingsError
    from protocol.node.stopping import Stop
    from verifier.only_watch import OnlyWatch

    if acts:
        raise SettingsError(
            "--only-watch",
            expected="no flag of an account, a stake, a service or a device",
            got="one",
            remedy="leave it out: nothing is sent, served or replayed",
        )
    settings = _settings(home, flags)
    logs.configure(log_json, verbose)
    stop = Stop()
    stop.on_signals()
    with connect_by(settings, sends=False) as client:
        return OnlyWatch(client, settings, home, stop).run(once)


@command(app, connection=SENDS)
def inform(
    connection: Flags,
    task: Annotated[int, typer.Argument(min=1, max=MOST_TASK, help="The seat's task, which is not over.")],
    seat: Annotated[int, typer.Argument(min=0, max=255, help="Number of an attested seat of somebody else.")],
    salt: Annotated[str, typer.Argument(help="Under which it attested: 64 hexadecimal digits.")],
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the salt of a seat to the chain, and take half of the lock of the party that gave the salt away.
    If `watch` runs from this account, do not use this command: offer the salt to the service of `watch`
    instead.
    """
    with _client(at_home(home), connection) as client:
        from time import sleep

        from protocol.node import logs
        from protocol.node.output import Output
        from protocol.node.words import tokens
        from verifier.informing import inform as inform_now
        from verifier.informing import parsed_salt

        logs.configure(as_json=False)  # this takes several blocks, so sent transactions are logged meanwhile
        receipt = inform_now(client, task, seat, parsed_salt(salt), partial(sleep, 1))
        paid = client.looks.event(receipt, "Informed").arguments["paid"]
        output = Output("verifier inform", as_json)
        output.say(f"seat {seat} of task {task} has lost its lock; {tokens(paid)} of it are yours")
        output.result({"account": client.address, "units": str(paid), "transaction": receipt.transaction})


@command(app, connection=SENDS)
def resign(connection: Flags, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Take no part in draws that are requested from now on, and begin to unbond the stake. Seats already
    taken remain: let `watch` run until they are released.
    """
    with _client(at_home(home), connection) as client:
        from protocol.node.output import Output
        from protocol.node.words import duration

        receipt = client.audit.resign()
        period = client.deployment.parameters.unbonding_period
        output = Output("verifier resign", as_json)
        output.say(f"resigned; `verifier withdraw` gives the stake back in {duration(period)}")
        output.result(
            {"account": client.address, "unbonding_seconds": period, "transaction": receipt.transaction}
        )


@command(app, connection=SENDS)
def withdraw(connection: Flags, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Take out the tokens that are free in the vault, including an unbonded stake, and the coin of returned
    deposits. Refused while `watch` runs with the account and this home folder. While `watch` runs with the
    account and another home folder, do not use this command.
    """
    with _client(at_home(home), connection) as client:
        from protocol.node.output import Output
        from protocol.node.party.funds import withdraw_above, withdraw_credit
        from protocol.node.words import coin, tokens
        from verifier.registration import leave

        left = leave(client)
        amount, _ = withdraw_above(client, 0)
        wei, _ = withdraw_credit(client)
        output = Output("verifier withdraw", as_json)
        output.say(f"{tokens(amount)} taken out{', the stake among them' if left else ''}")
        if wei:
            output.say(f"and {coin(wei)}, of deposits")
        output.result({"account": client.address, "units": str(amount), "wei": str(wei), "left": left})


def _settings(home: Home, flags: Flags) -> VerifierSettings:
    from protocol.node.settings import load
    from verifier.settings import VerifierSettings

    return load(VerifierSettings, "verifier", home.config, flags).values


def _client(home: Home, flags: Flags) -> Client:
    from protocol.node.party.connection import connect_by

    return connect_by(_settings(home, flags))
