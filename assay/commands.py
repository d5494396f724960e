"""Implements some of the `assay` commands, and the `Context` that most commands share. This module loads web3
and, if needed, torch. It is therefore imported only when a command runs, or when `assay.train` or
`assay.attach` is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from assay.folders import require_writable
from assay.settings import AssaySettings
from protocol.beacon.networks import load_network
from protocol.chain.accounts import DEVELOPMENT_ACCOUNTS, DEVELOPMENT_CHAIN, development_account, open_account
from protocol.chain.beacon import network_of
from protocol.chain.client import Client, connect
from protocol.chain.connection import Connection
from protocol.chain.deploy import deploy
from protocol.chain.deployable import prepare, require_deployable
from protocol.chain.deployed_code import require_package_code
from protocol.chain.deployment import (
    Deployment,
    copy_to_keep,
    deployment_file,
    deployments_of,
    load_deployment,
)
from protocol.chain.devnet import Devnet
from protocol.chain.parameters import TOKEN, load_parameters
from protocol.chain.transactions import Sender
from protocol.errors import ExitCode
from protocol.node.home import Home
from protocol.node.output import Output
from protocol.node.settings import load
from protocol.node.stopping import Stop
from protocol.node.words import tokens

if TYPE_CHECKING:
    from protocol.tasks.bundles import Limits

PURSE = 100_000
"""Test tokens that each development account gets when contracts are deployed on a development chain, if the
account has none.
"""


class Context:
    """The home folder, settings and output of one command."""

    def __init__(self, home: Home, flags: Mapping[str, object | None], output: Output) -> None:
        self.home = home
        loaded = load(AssaySettings, "assay", home.config, flags)
        self.settings = loaded.values
        self._sources = loaded.sources
        self.output = output

    def names(self, setting: str) -> bool:
        """Whether a flag, the environment or the settings file sets a setting."""
        return self._sources[setting] != "default"

    def client(self, account: bool = False) -> Client:
        """A client of the contracts. With `account`, as for commands that send transactions, the client has
        the account that the settings name; otherwise it has none.
        """
        settings = self.settings
        name = settings.account if account else None
        return connect(
            settings.rpc,
            settings.deployment,
            name,
            password_file=settings.password_file,
            finality=settings.finality,
        )

    def limits(self, client: Client) -> Limits:
        """Limits on what is accepted from strangers. They also say which addresses may be asked; on a
        development chain, the addresses of this machine may be asked too.
        """
        from protocol.tasks.bundles import Limits

        local = client.connection.chain_id == DEVELOPMENT_CHAIN
        return Limits(allowed=self.settings.bundles, this_machine=local)

    def others(self, client: Client) -> list[Deployment]:
        """The other known deployments on the client's chain; none if a setting names the deployment."""
        if self.settings.deployment is not None:
            return []
        connection = client.connection
        known = deployments_of(connection.chain_id, connection.genesis)
        return [one for one in known if one.addresses.market != client.market.address]


def devnet(context: Context, port: int, block_time: int, log: Path | None) -> None:
    """Run a development chain and its beacon until stopped."""
    from assay.beacon import development_beacon

    stop = Stop()
    stop.on_signals()
    with (
        Devnet(port, block_time or None, log=log) as chain,
        development_beacon(chain.connection, context.settings.beacon_port) as beacon,
    ):
        context.output.say(f"beacon at {beacon.url}, a round each second of the chain's time")
        context.output.say(f"{chain.client} at {chain.url}, chain {chain.chain_id}; Ctrl-C ends it")
        context.output.result(
            {
                "url": chain.url,
                "chain_id": chain.chain_id,
                "pid": chain.pid,
                "client": chain.client,
                "beacon": beacon.url,
            }
        )
        while not stop.wait(2.0):
            chain.connection.block()  # raises RpcUnavailable if anvil has ended by itself


def deploy_contracts(
    context: Context,
    token: str | None,
    parameters: str | None,
    dry_run: bool,
    salt: str = "",
    beacon: str | None = None,
) -> None:
    """Deploy the missing contracts to the chain at `rpc`, and write the deployment file. On a development
    chain, also give out test tokens, unless `token` names a token to use.

    `parameters` names a preset or a file. Its default is the preset `devnet` on a development chain, and the
    preset `recommended` on any other chain. `beacon` names a network or a file. Its default is the network
    `development` on a development chain, and the network `evmnet` on any other chain.
    """
    settings, output = context.settings, context.output
    connection = Connection(settings.rpc)
    chosen = parameters or ("devnet" if connection.chain_id == DEVELOPMENT_CHAIN else "recommended")
    fixed = load_parameters(chosen)
    network = network_of(connection.chain_id) if beacon is None else load_network(beacon)
    require_deployable(connection, token, network)
    account = open_account(settings.account, connection.chain_id, settings.password_file)
    planned, described = prepare(connection, str(account.address), fixed, token, salt, network)
    missing = [made.key for made in planned.missing(connection)]
    for name, address in planned.addresses.model_dump().items():
        made = any(name == creation.key for creation in planned.creations)
        output.say(f"{name:8} {address}{'' if name in missing or not made else '  there already'}")
    if dry_run:
        output.say(
            f"chain {connection.chain_id} is suitable; {account.address} would deploy {len(missing)} contracts, "
            f"parameters {chosen}, beacon {network.beacon_id}"
        )
        output.result(
            {
                "chain_id": connection.chain_id,
                "deployer": account.address,
                "parameters": chosen,
                "beacon": network.beacon_id,
                "salt": salt,
                "addresses": planned.addresses.model_dump(),
                "missing": missing,
                "sent": False,
            }
        )
        return
    copy = copy_to_keep(described)
    with Sender(connection, account) as sender:
        deployed = deploy(sender, fixed, token, salt, network)
    if token is None and connection.chain_id == DEVELOPMENT_CHAIN:
        _give_out_tokens(context, deployed)
    file = deployment_file(deployed.chain_id)
    output.say(f"written to {file}")
    if copy is not None:
        output.say(f"what the deployment file said before is kept in {copy}; --deployment names it")
    output.result({"file": str(file), **deployed.model_dump(mode="json")})


def _give_out_tokens(context: Context, deployed: Deployment) -> None:
    """Give test tokens to every development account that has none."""
    settings = context.settings
    client = connect(settings.rpc, deployed, settings.account, password_file=settings.password_file)
    with client, ThreadPoolExecutor(DEVELOPMENT_ACCOUNTS) as pool:

        def give(index: int) -> None:
            address = str(development_account(index, client.connection.chain_id).address)
            if not client.token.balance_of(address):
                client.token.mint(address, PURSE * TOKEN)

        list(pool.map(give, range(DEVELOPMENT_ACCOUNTS)))
    context.output.say(f"{PURSE:,} test tokens to each of the {DEVELOPMENT_ACCOUNTS} development accounts")


def check_contracts(context: Context) -> None:
    """Compare the contracts of a deployment file with this package's. Raises DeploymentError if they
    differ.
    """
    settings, output = context.settings, context.output
    with closing(Connection(settings.rpc)) as connection:
        deployment = load_deployment(settings.deployment or connection.chain_id)
        require_package_code(connection, deployment)
    at = deployment.addresses.model_dump()
    output.say(f"chain {deployment.chain_id}: the contracts are this package's, with the file's arguments")
    output.result({"chain_id": deployment.chain_id, "matches": True, "addresses": at})


def serve(context: Context) -> None:
    """Serve the bundles under the home folder until stopped."""
    from assay.serving import application
    from protocol.node.http import bind, server, url_of

    settings = context.settings
    bound = bind(settings.host, settings.port)
    port = bound.getsockname()[1]
    context.output.say(f"bundles of {context.home.bundles} at {url_of(settings.host, port)}/bundles/")
    server(application(context.home.bundles), settings.proxies).run(sockets=[bound])


def result(context: Context, task: int, folder: Path, evaluate: bool, embed: bool) -> None:
    """Fetch a task's result, check it against the chain, write it with a proof, and print its metrics."""
    from assay import results
    from assay.known_task import KnownTask
    from assay.replacing import origin_of, require_replaceable
    from assay.writing import write

    with context.client() as client:
        require_replaceable(folder, origin_of(client.deployment, task))
        known = KnownTask.meant(client, context.home, task)
        found = results.fetch(client, context.home, task, context.limits(client), known)
        file = known.file(client, context.home) if evaluate else None
        context.output.result(write(client, context.home, context.output, found, folder, file, embed))


def watch(
    context: Context, task: int, folder: Path | None, evaluate: bool, tensorboard: Path | None
) -> ExitCode:
    """Follow a task until it is over, and return its outcome. With `tensorboard`, metrics also go to event
    files.
    """
    from assay.known_task import KnownTask
    from assay.replacing import origin_of, require_replaceable
    from assay.watching.callbacks import TensorBoard
    from assay.watching.command import watch as follow

    callbacks = [] if tensorboard is None else [TensorBoard(tensorboard)]
    if folder is not None:
        require_writable(folder)
    with context.client() as client:
        if folder is not None:
            require_replaceable(folder, origin_of(client.deployment, task))
        limits, known = context.limits(client), KnownTask.meant(client, context.home, task)
        file = known.file(client, context.home) if evaluate else None
        return follow(client, context.home, limits, context.output, task, folder, file, callbacks, known)


def cancel(context: Context, task: int, dry_run: bool) -> None:
    """Cancel a task that nobody has bid on."""
    from assay import cancelling
    from assay.known_task import KnownTask

    with context.client(account=True) as client:
        KnownTask.meant(client, context.home, task).view(client, context.home)
        if dry_run:
            escrow = cancelling.require_cancellable(client, task)
            context.output.say(f"task {task} can be cancelled: {tokens(escrow)} would be free again")
        else:
            escrow = cancelling.cancel(client, task)
            context.output.say(f"task {task} is cancelled: {tokens(escrow)} are free in the vault again")
    context.output.result({"task": task, "sent": not dry_run, "refund": escrow})
