"""The command `assay`. Only Typer is imported here; everything heavy is imported by the command that needs it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assay import housekeeping
from assay.options import DryRunOption, PortOption, desk_of
from protocol.node.exits import reported
from protocol.node.options import (
    AccountOption,
    DeploymentOption,
    DevAccountOption,
    HomeOption,
    JsonOption,
    PasswordOption,
    RpcOption,
    chosen_account,
)

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # rich takes half of the time of --help
    pretty_exceptions_enable=False,
    help="Have models trained by strangers, and know that they were: chain, contracts, tasks, results.",
)
app.add_typer(housekeeping.account, name="account")
app.add_typer(housekeeping.config, name="config")


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

    with reported():
        commands.devnet(desk_of("devnet", home, as_json), port, block_time, log)


@app.command()
def deploy(
    token: Annotated[str | None, typer.Option(help="ERC-20 to use, else a test token is made.")] = None,
    parameters: Annotated[
        str | None, typer.Option(help="devnet, recommended or a TOML file; else as fits the chain.")
    ] = None,
    salt: Annotated[str, typer.Option(help="Any text: other contracts of the same arguments.")] = "",
    check: Annotated[bool, typer.Option("--check", help="Only compare a deployment's code.")] = False,
    rpc: RpcOption = None,
    account: AccountOption = None,
    dev_account: DevAccountOption = None,
    password_file: PasswordOption = None,
    deployment: DeploymentOption = None,
    home: HomeOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Deploy the contracts and write the deployment file. On a development chain, give out test tokens.

    Their addresses are known before (--dry-run); what is there already is not made again.
    """
    from assay import commands

    with reported():
        name = chosen_account(account, dev_account)
        context = desk_of(
            "deploy",
            home,
            as_json,
            rpc=rpc,
            account=name,
            password_file=password_file,
            deployment=deployment,
        )
        if check:
            commands.check_contracts(context)
        else:
            commands.deploy_contracts(context, token, parameters, dry_run, salt)


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

    with reported():
        name = chosen_account(account, dev_account)
        context = desk_of(
            "mint", home, as_json, rpc=rpc, account=name, password_file=password_file, deployment=deployment
        )
        commands.mint(context, to, amount)


@app.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address to serve on.")] = None,
    port: PortOption = None,
    home: HomeOption = None,
) -> None:
    """Serve the bundles under the home folder, read-only, until Ctrl-C."""
    from assay import commands

    with reported():
        commands.serve(desk_of("serve", home, False, host=host, port=port))


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

    with reported():
        name = chosen_account(account, dev_account)
        context = desk_of(
            "submit",
            home,
            as_json,
            rpc=rpc,
            account=name,
            password_file=password_file,
            deployment=deployment,
            bundles_url=bundles_url,
        )
        commands.submit(context, file, dry_run)


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

    with reported():
        commands.status(desk_of("status", home, as_json, rpc=rpc, deployment=deployment), task)


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

    with reported():
        context = desk_of("result", home, as_json, rpc=rpc, deployment=deployment)
        commands.result(context, task, output, evaluate)
