"""Gives coin and test tokens to an account of a development chain, and mints test tokens on any chain.
Imported only when a command runs.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from protocol.chain.accounts import DEVELOPMENT_CHAIN, address_of, open_account
from protocol.chain.client import Client, connect
from protocol.chain.connection import Connection
from protocol.chain.errors import DeploymentError, Reverted, WrongChain
from protocol.chain.fees import Call
from protocol.chain.parameters import TOKEN
from protocol.chain.transactions import Sender
from protocol.node.party.funds import COIN
from protocol.node.words import coin, tokens

if TYPE_CHECKING:
    from assay.commands import Context


def fund(context: Context, account: str, coins: int, amount: int) -> None:
    """Give an account whole coins and whole test tokens of a development chain. Raises WrongChain on any
    other chain.
    """
    settings, output = context.settings, context.output
    with closing(Connection(settings.rpc)) as connection:
        chain_id = connection.chain_id
        if chain_id != DEVELOPMENT_CHAIN:
            raise WrongChain(connection.url, f"{DEVELOPMENT_CHAIN}, a development chain", chain_id)
        address = address_of(account, chain_id)
        if amount:  # first, because it may be refused
            with connect(settings.rpc, settings.deployment, settings.account) as client:
                _mint(client, address, amount)
        if coins:
            with Sender(connection, open_account(settings.account, chain_id)) as sender:
                sender.send(Call(address, b"", "transfer of coin", coins * COIN))
    output.say(f"{coin(coins * COIN)} and {tokens(amount * TOKEN)} to {address}")
    output.result({"account": address, "wei": str(coins * COIN), "units": str(amount * TOKEN)})


def mint(context: Context, account: str, amount: int) -> None:
    """Mint whole test tokens for an account."""
    with context.client(account=True) as client:
        address = address_of(account, client.connection.chain_id)
        _mint(client, address, amount)
    context.output.say(f"{amount:,} test tokens to {address}")
    context.output.result({"account": address, "amount": amount * TOKEN})


def _mint(client: Client, address: str, amount: int) -> None:
    try:
        client.token.mint(address, amount * TOKEN)
    except Reverted as error:
        if error.name != "NoReason":
            raise
        raise DeploymentError(
            f"token at {client.token.address}",
            expected="a test token, which anyone mints",
            got="one that refuses",
            remedy="ask a holder of tokens to send some",
        ) from error
