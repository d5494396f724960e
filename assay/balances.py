"""The balances of accounts on a chain: coin, tokens, and free and locked tokens in the vault. This module
is imported only when a command runs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING

from assay.status import open_tasks
from protocol.chain.accounts import list_accounts
from protocol.chain.client import Client
from protocol.chain.connection import Connection
from protocol.chain.errors import DeploymentError, RpcUnavailable
from protocol.node.words import amount, tokens

if TYPE_CHECKING:
    from assay.commands import Context


@dataclass(frozen=True, slots=True)
class Held:
    """An account's token units: outside the vault, free in the vault, staked as a verifier, and locked by
    open tasks in which the account is the submitter or the best bidder.
    """

    tokens: int
    free: int
    stake: int
    in_tasks: int

    def __str__(self) -> str:
        return (
            f"{tokens(self.tokens)}, in the vault {amount(self.free)} free, {amount(self.stake)} staked as verifier, "
            f"{amount(self.in_tasks)} in open tasks"
        )


HELD = tuple(field.name for field in fields(Held))


@dataclass(frozen=True, slots=True)
class Balance:
    """An account's balance. `coin` is in wei; `held` is None if there is no deployment."""

    coin: int
    held: Held | None = None

    def __str__(self) -> str:
        return f"{amount(self.coin)} coin" + ("" if self.held is None else f", {self.held}")

    def plain(self) -> dict[str, str | None]:
        """The amounts as text, for JSON. If there is no deployment, the amounts of `held` are None."""
        held = dict.fromkeys(HELD) if self.held is None else asdict(self.held)
        amounts = {"coin": self.coin, **held}
        return {name: None if value is None else str(value) for name, value in amounts.items()}


def show_accounts(context: Context, *, offline: bool) -> None:
    """Print names and addresses of all accounts. Unless `offline` is set, also print their balances if a
    chain is reachable.
    """
    output = context.output
    accounts = list_accounts()
    addresses = [account.address for account in accounts if account.address is not None]
    found, chain_id = ({}, None) if offline or not addresses else _found(context, addresses)
    width = max((len(account.name) for account in accounts), default=0)
    for account in accounts:
        balance = found.get(account.address or "")
        output.say(
            f"{account.name:{width}}  {account.address or 'a key file that is damaged or not readable'}"
        )
        if balance is not None:
            output.say(f"{'':{width}}    {balance}")
    if not accounts:
        output.say("no accounts yet: `assay account new NAME` makes one")
    rows = []
    for account in accounts:
        balance = found.get(account.address or "")
        told = None if balance is None else balance.plain()
        rows.append({"name": account.name, "address": account.address, "balance": told})
    output.result({"chain_id": chain_id, "accounts": rows})


def _found(context: Context, addresses: Sequence[str]) -> tuple[dict[str, Balance], int | None]:
    """Returns the balances by address, and the chain's id. Without a deployment, the balances hold coin only.
    Without a reachable chain, there are no balances and the id is None.

    A missing deployment raises DeploymentError if a setting names the deployment. An unreachable chain raises
    RpcUnavailable if a setting names the chain's node.
    """
    try:
        with context.client() as client:
            return balances(client, addresses), client.connection.chain_id
    except DeploymentError as error:
        if context.settings.deployment is not None:
            raise
        context.output.say(f"without tokens, for there is no deployment: {error}")
    except RpcUnavailable:
        if context.names("rpc"):
            raise
        context.output.say("no chain is reached: names and addresses alone (--rpc names a node)")
        return {}, None
    connection = Connection(context.settings.rpc)
    return {address: Balance(connection.balance(address)) for address in addresses}, connection.chain_id


def balances(client: Client, addresses: Sequence[str]) -> dict[str, Balance]:
    """The accounts' coin, and their tokens under the client's contracts, by address. All token amounts are
    read at one block. The list of open tasks is read earlier, and the coin at the newest block, so these may
    be of other blocks. Raises ChainError.
    """
    tasks, _ = open_tasks(client)
    with client.connection.view():
        client.token.ask_ahead("balanceOf", *([address] for address in addresses))
        client.vault.ask_ahead("free", *([address] for address in addresses))
        client.audit.ask_ahead("registrationOf", *([address] for address in addresses))
        locked = _in_open_tasks(client, addresses, tasks)
        return {
            address: Balance(
                client.connection.balance(address),
                Held(
                    client.token.balance_of(address),
                    client.vault.free(address),
                    _registered(client, address),
                    locked[address],
                ),
            )
            for address in addresses
        }


def _registered(client: Client, address: str) -> int:
    registration = client.audit.registration(address)
    return 0 if registration is None else client.vault.lock_of(registration.lock).remaining


def _in_open_tasks(client: Client, addresses: Sequence[str], tasks: Sequence[int]) -> defaultdict[str, int]:
    """Token units that each account has locked in these tasks, by address."""
    client.market.ask_ahead("taskOf", *([task] for task in tasks))
    locks = [
        (owner, lock)
        for view in map(client.market.task, tasks)
        for owner, lock in ((view.submitter, view.escrow), (view.bidder, view.stake))
        if owner in addresses
    ]
    client.vault.ask_ahead("lockOf", *([lock] for _, lock in locks))
    found: defaultdict[str, int] = defaultdict(int)
    for owner, lock in locks:
        found[owner] += client.vault.lock_of(lock).remaining
    return found
