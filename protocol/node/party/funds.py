"""A party's tokens and coin: checks before tokens are locked or coin is spent, and withdrawals."""

from __future__ import annotations

from typing import Final

from protocol.chain.client import Client
from protocol.chain.receipts import Receipt
from protocol.errors import AssayError
from protocol.node.words import amount as shown
from protocol.node.words import coin, tokens

COIN: Final = 10**18
"""Wei in one coin of the chain."""


class NotEnoughTokens(AssayError):
    """The account has fewer tokens than must be locked."""


def require_free(client: Client, amount: int, purpose: str = "") -> None:
    """Deposit tokens so that the account's free balance in the vault is at least `amount` units. Raises
    NotEnoughTokens, ChainError.

    `purpose` is for the message, such as "for the escrow".
    """
    require_tokens(client, client.address, amount, purpose)
    client.fund(amount)


def require_tokens(client: Client, account: str, amount: int, purpose: str = "") -> None:
    """Raise NotEnoughTokens unless the account has `amount` units, free in the vault or outside it. Raises
    ChainError.
    """
    have = sum(client.tokens(account))
    if have < amount:
        raise NotEnoughTokens(
            f"account {account}",
            expected=f"{tokens(amount)} {purpose}".rstrip(),
            got=shown(have, at_most=True),
            remedy="send tokens to it, on a development chain by `assay fund`",
        )


class NotEnoughCoin(AssayError):
    """The account has less of the chain's coin than the action may cost."""


def require_coin(client: Client, games: int) -> None:
    """Raise NotEnoughCoin unless the account's coin and its credit with the game's contract pay for `games`
    games of the greatest length. Raises ChainError.
    """
    due = games * client.game.coin_of_longest()
    have = client.connection.balance(client.address) + client.game.credit(client.address)
    if have < due:
        raise NotEnoughCoin(
            f"account {client.address}",
            expected=f"{coin(due)} for deposits and gas of {games} of the longest games",
            got=shown(have, at_most=True),
            remedy="send coin to it: deposits of nodes that the solver does not answer come back",
        )


def require_gas(client: Client, account: str, gas: int) -> None:
    """Raise NotEnoughCoin unless the account's coin pays for `gas` at the present price. Raises ChainError."""
    due, have = gas * client.connection.gas_price, client.connection.balance(account)
    if have < due:
        raise NotEnoughCoin(
            f"account {account}",
            expected=f"{due / COIN:g} of the chain's coin for {gas:,} gas",
            got=f"{have / COIN:g}",
            remedy="send coin to it",
        )


def withdraw_credit(client: Client) -> tuple[int, Receipt | None]:
    """Withdraw the account's credit with the game. Returns the wei, and the receipt if there was credit."""
    amount = client.game.credit(client.address)
    return amount, client.game.withdraw_credit() if amount else None


def withdraw_above(client: Client, kept: int) -> tuple[int, Receipt | None]:
    """Withdraw free tokens beyond `kept` units from the vault. Returns the units, and the receipt if there
    were any.
    """
    amount = client.vault.free(client.address) - kept
    if amount <= 0:
        return 0, None
    return amount, client.vault.withdraw(amount)
