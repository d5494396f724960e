"""A party's tokens and coin: what must be there before something is locked, and withdrawing what is free."""

from __future__ import annotations

from typing import Final

from protocol.chain.client import Client
from protocol.chain.receipts import Receipt
from protocol.errors import AssayError
from protocol.node.words import amount as shown
from protocol.node.words import coin, tokens

COIN: Final = 10**18
"""Wei of one of the chain's coin."""


class NotEnoughTokens(AssayError):
    """The account holds fewer tokens than must be locked."""


def require_free(client: Client, amount: int, purpose: str = "") -> None:
    """Raise the free balance in the vault to `amount` units, from the account's tokens. Raises NotEnoughTokens.

    `purpose` is for the message: "for the escrow".
    """
    require_tokens(client, client.address, amount, purpose)
    client.fund(amount)


def require_tokens(client: Client, account: str, amount: int, purpose: str = "") -> None:
    """Whether the account has `amount` units, in the vault or outside of it. Raises NotEnoughTokens, ChainError."""
    have = sum(client.tokens(account))
    if have < amount:
        raise NotEnoughTokens(
            f"account {account}",
            expected=f"{tokens(amount)} {purpose}".rstrip(),
            got=shown(have, at_most=True),
            remedy="send tokens to it, on a development chain by `assay fund`",
        )


class NotEnoughCoin(AssayError):
    """The account holds less of the chain's coin than the action may cost."""


def require_coin(client: Client, games: int) -> None:
    """Whether the account's coin and its credit with the game pay for that many games of the longest kind. Raises
    NotEnoughCoin, ChainError.
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
    """Whether the account's coin pays for that much gas at the present price. Raises NotEnoughCoin, ChainError."""
    due, have = gas * client.connection.gas_price, client.connection.balance(account)
    if have < due:
        raise NotEnoughCoin(
            f"account {account}",
            expected=f"{due / COIN:g} of the chain's coin for {gas:,} gas",
            got=f"{have / COIN:g}",
            remedy="send coin to it",
        )


def withdraw_credit(client: Client) -> tuple[int, Receipt | None]:
    """Withdraw the account's credit with the game; how many wei it was, and the transaction if any."""
    amount = client.game.credit(client.address)
    return amount, client.game.withdraw_credit() if amount else None


def withdraw_above(client: Client, kept: int) -> tuple[int, Receipt | None]:
    """Withdraw what is free beyond `kept` token units from the vault; how much it was, and the transaction if any."""
    amount = client.vault.free(client.address) - kept
    if amount <= 0:
        return 0, None
    return amount, client.vault.withdraw(amount)
