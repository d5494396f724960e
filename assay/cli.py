"""The command `assay`. Only Typer is imported here; everything heavy is imported by the command that needs it."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protocol.runtime.exits import reported
from protocol.runtime.home import VARIABLE, Home

if TYPE_CHECKING:
    from assay.commands import Desk

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Have models trained by strangers, and know that they were: chain, contracts, tasks, results.",
)
account_app = typer.Typer(no_args_is_help=True, help="Encrypted key files under the home folder.")
config_app = typer.Typer(no_args_is_help=True, help="Settings and where they come from.")
app.add_typer(account_app, name="account")
app.add_typer(config_app, name="config")

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
JsonOption = Annotated[bool, typer.Option("--json", help="A versioned JSON envelope on stdout.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Do all but send transactions.")]
PortOption = Annotated[int | None, typer.Option(min=0, max=65_535, help="Port to serve on; 0: any.")]


def main() -> None:
    """Entry point of the console command."""
    app()


@app.command()
def devnet(
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port; 0: any.")] = 8545,
    block_time: Annotated[int, typer.Option(min=0, help="Seconds; 0: a block per transaction.")] = 1,
    log: Annotated[Path | None, typer.Option(help="File for anvil's own output.")] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a development chain (anvil) until Ctrl-C."""
    from assay import commands

    with _reported():
        commands.devnet(_desk("devnet", home, as_json), port, block_time, log)


@app.command()
def deploy(
    token: Annotated[str | None, typer.Option(help="ERC-20 to use, else a test token is made.")] = None,
    rpc: RpcOption = None,
    account: AccountOption = None,
    dev_account: DevAccountOption = None,
    password_file: PasswordOption = None,
    home: HomeOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Deploy the contracts and write the deployment file. On a development chain, give out test tokens."""
    from assay import commands

    with _reported():
        name = _account(account, dev_account)
        desk = _desk("deploy", home, as_json, rpc=rpc, account=name, password_file=password_file)
        commands.deploy_contracts(desk, token, dry_run)


@app.command()
def mint(
    to: Annotated[str, typer.Argument(help="An address, or dev:<index>.")],
    amount: Annotated[int, typer.Argument(min=1, max=10**12, help="Whole tokens.")],
    rpc: RpcOption = None,
    account: AccountOption = None,
    dev_account: DevAccountOption = None,
    password_file: PasswordOption = None,
    deployment: DeploymentOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make test tokens; the test token of a development chain lets anyone."""
    from assay import commands

    with _reported():
        name = _account(account, dev_account)
        desk = _desk(
            "mint", home, as_json, rpc=rpc, account=name, password_file=password_file, deployment=deployment
        )
        commands.mint(desk, to, amount)


@app.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address to serve on.")] = None,
    port: PortOption = None,
    home: HomeOption = None,
) -> None:
    """Serve the bundles under the home folder, read-only, until Ctrl-C."""
    from assay import commands

    with _reported():
        commands.serve(_desk("serve", home, False, host=host, port=port))


@app.command()
def submit(
    file: Annotated[Path, typer.Argument(help="A task file, such as examples/digits.toml.")],
    bundles_url: Annotated[str | None, typer.Option(help="Where `assay serve` is reached.")] = None,
    rpc: RpcOption = None,
    account: AccountOption = None,
    dev_account: DevAccountOption = None,
    password_file: PasswordOption = None,
    deployment: DeploymentOption = None,
    home: HomeOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Capture a training step as data, write its bundle, and post it as a task. Runs the file's own Python source."""
    from assay import commands

    with _reported():
        name = _account(account, dev_account)
        desk = _desk(
            "submit",
            home,
            as_json,
            rpc=rpc,
            account=name,
            password_file=password_file,
            deployment=deployment,
            bundles_url=bundles_url,
        )
        commands.submit(desk, file, dry_run)


@app.command()
def status(
    task: Annotated[int | None, typer.Argument(min=1, help="A task's id; without one, all.")] = None,
    rpc: RpcOption = None,
    deployment: DeploymentOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say where tasks stand: parties, deadlines, duties, games and the way they went."""
    from assay import commands

    with _reported():
        commands.status(_desk("status", home, as_json, rpc=rpc, deployment=deployment), task)


@app.command()
def result(
    task: Annotated[int, typer.Argument(min=1, help="A task's id.")],
    output: Annotated[Path, typer.Option(help="Folder for state.safetensors.")],
    evaluate: Annotated[bool, typer.Option(help="Run the task file's own evaluation.")] = True,
    rpc: RpcOption = None,
    deployment: DeploymentOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fetch a task's final state from its solver, check it against the chain, write it."""
    from assay import commands

    with _reported():
        desk = _desk("result", home, as_json, rpc=rpc, deployment=deployment)
        commands.result(desk, task, output, evaluate)


@app.command()
def demo(
    folder: Annotated[Path, typer.Option(help="Folder for logs and the report.")] = Path("build/demo"),
    as_json: JsonOption = False,
) -> None:
    """Seven stories on a development chain of their own: honest, cheating and falsely accused solvers."""
    from assay import commands

    with _reported():
        code = commands.demo(_desk("demo", folder / "home" / "demo", as_json), folder)
    raise typer.Exit(int(code))


@account_app.command("new")
def account_new(
    name: Annotated[str, typer.Argument(help="Letters, digits, - and _.")],
    password_file: PasswordOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make an account; its key is encrypted with a password that is asked for."""
    from protocol.chain.accounts import create_account
    from protocol.runtime.output import Output

    with _reported():
        _at_home(home)
        address = create_account(name, password_file).address
        printed = Output("account new", as_json)
        printed.say(f"{name} {address}")
        printed.result({"name": name, "address": address})


@account_app.command("list")
def account_list(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Names of the accounts under the home folder."""
    from protocol.chain.accounts import list_accounts
    from protocol.runtime.output import Output

    with _reported():
        _at_home(home)
        names = list_accounts()
        printed = Output("account list", as_json)
        for name in names:
            printed.say(name)
        printed.result(names)


@config_app.command("show")
def config_show(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Every setting of `assay`, its value and its source."""
    from assay.settings import AssaySettings
    from protocol.runtime.output import Output
    from protocol.runtime.settings import load

    with _reported():
        rows = load(AssaySettings, "assay", _at_home(home).config, {}).rows()
        printed = Output("config show", as_json)
        for name, value, source in rows:
            printed.say(f"{name:15} {value:30} {source}")
        printed.result([{"name": name, "value": value, "source": source} for name, value, source in rows])


def _account(account: str | None, dev_account: int | None) -> str | None:
    if account is not None and dev_account is not None:
        from protocol.runtime.settings import SettingsError

        raise SettingsError("expected --account or --dev-account, got both; leave one out")
    return f"dev:{dev_account}" if dev_account is not None else account


def _at_home(given: Path | None) -> Home:
    """The home folder; everything below that looks for it finds the same one."""
    home = Home.find(given)
    os.environ[VARIABLE] = str(home.root)
    return home


def _desk(command: str, home: Path | None, as_json: bool, **flags: object | None) -> Desk:
    from assay.commands import Desk
    from protocol.runtime.output import Output

    return Desk(_at_home(home), flags, Output(command, as_json))


def _reported() -> AbstractContextManager[None]:
    from assay.errors import known

    return reported(known)
