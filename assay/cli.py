"""The command `assay`. Typer is the only third-party package imported at the top; each command imports what
else it needs.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay import accounts
from assay.lanes import add_lanes
from assay.options import (
    AddresseeArgument,
    DryRunOption,
    FileArgument,
    LinesOption,
    PortOption,
    TaskArgument,
    context_of,
)
from protocol.errors import ExitCode
from protocol.node.commands import READS, SENDS, Flags, add_config, app_of, command
from protocol.node.options import MOST_TASK, DeviceOption, HomeOption, JsonOption

if TYPE_CHECKING:
    from assay.settings import AssaySettings

app = app_of("Have models trained by strangers, and know that they were: chain, contracts, tasks, results.")
SIGNS = ("rpc", "account", "dev_account", "password_file")
"""Options of a command that signs but calls no contract."""
app.add_typer(accounts.account, name="account")


def main() -> None:
    """Entry point of the console command."""
    app()


def _model() -> type[AssaySettings]:
    from assay.settings import AssaySettings

    return AssaySettings


add_config(app, _model, "assay", "config show")


@command(app)
def devnet(
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port; 0: any.")] = 8545,
    block_time: Annotated[int, typer.Option(min=0, help="Seconds; 0: a block per transaction.")] = 1,
    log: Annotated[Path | None, typer.Option(help="File for anvil's own output.")] = None,
    beacon_port: Annotated[
        int | None, typer.Option(min=0, max=65_535, help="Port of its beacon; 0: any.")
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a development chain (anvil) and its beacon until Ctrl-C."""
    from assay import commands

    commands.devnet(context_of("devnet", home, as_json, beacon_port=beacon_port), port, block_time, log)


@command(app, connection=SIGNS)
def beacon(
    connection: Flags,
    network: Annotated[
        str | None, typer.Option(help="TOML file of the network; else that of development chains.")
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address to serve on.")] = None,
    port: PortOption = None,
    home: HomeOption = None,
) -> None:
    """Sign a beacon's rounds with the account's key, by the chain's time, and serve them as drand does, until
    Ctrl-C.

    Only for tests, not where real money is at stake: anyone who has the key knows all rounds in advance.
    """
    from assay.beacon import serve

    serve(context_of("beacon", home, False, **connection, host=host, beacon_port=port), network)


@command(app, connection=SENDS)
def deploy(
    connection: Flags,
    token: Annotated[str | None, typer.Option(help="ERC-20 to use, else a test token is made.")] = None,
    parameters: Annotated[
        str | None, typer.Option(help="devnet, recommended or a TOML file; else as fits the chain.")
    ] = None,
    beacon: Annotated[
        str | None, typer.Option(help="evmnet, development or a TOML file; else as fits the chain.")
    ] = None,
    salt: Annotated[str, typer.Option(help="Any text: other contracts of the same arguments.")] = "",
    check: Annotated[bool, typer.Option("--check", help="Only compare a deployment's code.")] = False,
    home: HomeOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Deploy the contracts and write the deployment file. On a development chain, give out test tokens.

    With --dry-run, show the contracts' addresses without deploying anything. Existing contracts are not
    created again.
    """
    _require_meaningful(
        check,
        {
            "--token": token,
            "--parameters": parameters,
            "--beacon": beacon,
            "--salt": salt,
            "--dry-run": dry_run,
        },
        connection["deployment"],
    )
    from assay import commands

    context = context_of("deploy", home, as_json, **connection)
    if check:
        commands.check_contracts(context)
    else:
        commands.deploy_contracts(context, token, parameters, dry_run, salt, beacon)


def _require_meaningful(check: bool, arguments: dict[str, object], deployment: object) -> None:
    """Raise SettingsError for options of `deploy` that would be ignored. `--check` ignores `--dry-run` and
    the options that say what to deploy. Without `--check`, `--deployment` is ignored, because a deployment is
    always written to its chain's file in the home folder.
    """
    from protocol.node.settings import SettingsError

    ignored = [name for name, value in arguments.items() if value] if check else []
    if not check and deployment is not None:
        ignored = ["--deployment"]
    if ignored:
        raise SettingsError(
            expected="--check with --deployment, or what is to be deployed",
            got=f"{', '.join(ignored)} {'with' if check else 'without'} --check",
            remedy=f"leave {', '.join(ignored)} out",
        )


@command(app, connection=SENDS)
def mint(
    connection: Flags,
    to: AddresseeArgument,
    amount: Annotated[int, typer.Argument(min=1, max=10**12, help="Whole tokens.")],
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Mint test tokens. Anyone may mint the test token."""
    from assay import funding

    funding.mint(context_of("mint", home, as_json, **connection), to, amount)


@command(app, connection=READS)
def fund(
    connection: Flags,
    account: AddresseeArgument,
    coins: Annotated[int, typer.Option("--coin", min=0, max=10**6, help="Whole coins of the chain.")] = 100,
    amount: Annotated[int, typer.Option("--tokens", min=0, max=10**12, help="Whole test tokens.")] = 1_000,
    dev_account: Annotated[int, typer.Option(min=0, help="Index of the development key that pays.")] = 0,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give coin and test tokens to an account of a development chain."""
    from assay import funding

    context = context_of("fund", home, as_json, **connection, account=f"dev:{dev_account}")
    funding.fund(context, account, coins, amount)


@command(app)
def serve(
    host: Annotated[str | None, typer.Option(help="Address to serve on.")] = None,
    port: PortOption = None,
    home: HomeOption = None,
) -> None:
    """Serve the bundles under the home folder, read-only, until Ctrl-C."""
    from assay import commands

    commands.serve(context_of("serve", home, False, host=host, port=port))


@command(app)
def init(
    name: Annotated[Path, typer.Argument(help="A new folder; its name is the task's.")],
    as_json: JsonOption = False,
) -> None:
    """Write a folder with a working task to start from: a model file and a task file."""
    from assay.initialising import write_example
    from protocol.node.output import Output

    model, task = write_example(name)
    printed = Output("init", as_json)
    printed.say(
        f"written: {model.name} and {task.name} in {task.parent}; all parties will read its data and weights"
    )
    printed.say(f"next: `assay try {name / task.name}`")
    printed.result({"model": str(model), "task": str(task)})


@command(app, name="try")
def attempt(
    file: FileArgument,
    steps: Annotated[int, typer.Option(min=1, max=100_000, help="Steps to train.")] = 20,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train the first steps on this machine, in exact arithmetic and in plain torch. Needs no chain.

    Runs the file's own Python source. Says how far the losses differ, how much time and memory a step takes,
    and what the task may cost.
    """
    from assay import trying

    trying.attempt(context_of("try", home, as_json), file, steps)


@command(app, connection=READS)
def price(
    connection: Flags,
    file: FileArgument,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what a task will cost and how long it may take, and what recent tasks of the chain cost. Sends nothing."""
    from assay import pricing

    pricing.price(context_of("price", home, as_json, **connection), file)


@command(app, connection=SENDS)
def submit(
    connection: Flags,
    file: FileArgument,
    bundles_url: Annotated[str | None, typer.Option(help="Where `assay serve` is reached.")] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Post without asking; needed without a terminal.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for enough verifiers, an hour at most.")] = False,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Post what no solver with default settings takes.")
    ] = False,
    home: HomeOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Capture the training step of a task file as data, write the task's bundle, and post the task. Runs the
    file's own Python source.

    Shows the price, and asks before posting.
    """
    from assay import posting

    context = context_of(
        "submit",
        home,
        as_json,
        **connection,
        bundles_url=bundles_url,
    )
    choices = posting.Choices(yes, wait, anyway)
    (posting.dry_run if dry_run else posting.submit)(context, file, choices)


@command(app, connection=READS)
def status(
    connection: Flags,
    task: Annotated[
        int | None,
        typer.Argument(min=1, max=MOST_TASK, help="A task's id; without one, all that are not over."),
    ] = None,
    past: Annotated[bool, typer.Option("--past", help="Also those that are over.")] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show it again until Ctrl-C, or until TASK is over.")
    ] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the state of tasks: parties, deadlines, seats, games and the paths they took."""
    from assay import showing

    context = context_of("status", home, as_json, **connection)
    if watch:
        showing.watch(context, task, past)
    else:
        showing.show(context, task, past)


@command(app, connection=READS)
def watch(
    connection: Flags,
    task: TaskArgument,
    output: Annotated[Path | None, typer.Option(help="Folder for state.safetensors.")] = None,
    evaluate: Annotated[bool, typer.Option(help="Run the task file's own evaluation.")] = True,
    tensorboard: Annotated[Path | None, typer.Option(help="Folder for TensorBoard's event files.")] = None,
    home: HomeOption = None,
    as_json: LinesOption = False,
) -> ExitCode:
    """Follow a task until it is over: bids, progress, losses, audit, games. Fetch its result and check it.

    Ctrl-C stops watching. The exit code is 0 if the task was settled, 3 if its solver was convicted, and 2 if
    there is no result.
    """
    from assay import commands

    context = context_of("watch", home, as_json, **connection)
    return commands.watch(context, task, output, evaluate, tensorboard)


@command(app, connection=SENDS)
def cancel(
    connection: Flags,
    task: TaskArgument,
    home: HomeOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Cancel a task that nobody has bid on. Its whole escrow becomes free again."""
    from assay import commands

    commands.cancel(context_of("cancel", home, as_json, **connection), task, dry_run)


@command(app, connection=READS)
def result(
    connection: Flags,
    task: TaskArgument,
    output: Annotated[Path, typer.Option(help="Folder for state.safetensors and proof.json.")],
    evaluate: Annotated[bool, typer.Option(help="Run the task file's own evaluation.")] = True,
    embed: Annotated[
        bool, typer.Option("--embed", help="Put the proof into state.safetensors too, as metadata.")
    ] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fetch a task's final state from the parties that serve it, check it against the chain, and write it
    with a proof.
    """
    from assay import commands

    context = context_of("result", home, as_json, **connection)
    commands.result(context, task, output, evaluate, embed)


@command(app, connection=READS)
def verify(
    connection: Flags,
    target: Annotated[
        str | None, typer.Argument(metavar="TASK|PROOF", help="A task's id, or a proof file.")
    ] = None,
    segments: Annotated[
        int | None, typer.Option(min=1, help="Replay so many segments, drawn by chance.")
    ] = None,
    segment: Annotated[
        list[int] | None, typer.Option(min=1, help="Replay this segment (repeatable).")
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Replay all: what a task's id alone stands for.")
    ] = False,
    weights: Annotated[
        Path | None, typer.Option(help="Compare this safetensors file; its own proof needs no PROOF.")
    ] = None,
    device: DeviceOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Recompute a task's segments and compare them with the chain, or check a proof and weights. Needs no
    account.

    The exit code is 3 if a segment, a field of the proof or a tensor differs, or if the solver was convicted.
    It is 2 if a proof matches the chain, but its task no longer has a result.
    """
    given = [
        name for name, value in (("--segments", segments), ("--segment", segment), ("--all", every)) if value
    ]
    if len(given) > 1:
        from protocol.node.settings import SettingsError

        raise SettingsError(
            expected="one of --segments, --segment and --all", got=" and ".join(given), remedy="leave one out"
        )
    context = context_of("verify", home, as_json, **connection, device=device)
    from assay.verifying import Choice, verify

    return verify(context, target, weights, Choice(segments, tuple(segment or ()), every))


add_lanes(app)
