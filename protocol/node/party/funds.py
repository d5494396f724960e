"""A party's tokens and coin: what has to be there before something is locked, and taking out what is free."""

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
    """The account holds fewer tokens than have to be locked."""


def require_free(client: Client, amount: int, purpose: str = "") -> None:
    """Bring the free balance in the vault to `amount` units, from the account's tokens. Raises NotEnoughTokens.

    `purpose` is for the message: "for the escrow".
    """
    have = sum(client.tokens())
    if have < amount:
        raise NotEnoughTokens(
            f"account {client.address}",
            expected=f"{tokens(amount)} {purpose}".rstrip(),
            got=shown(have, at_most=True),
            remedy="send tokens to it, on a development chain by `assay fund`",
        )
    client.fund(amount)


class NotEnoughCoin(AssayError):
    """The account holds less of the chain's coin than what it is about to begin may take."""


def require_coin(client: Client, games: int) -> None:
    """Whether the account's coin and its credit with the game last for so many games at their longest. Raises
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


def withdraw_credit(client: Client) -> tuple[int, Receipt | None]:
    """Take the account's credit with the game; how many wei it was, and the transaction if any."""
    amount = client.game.credit(client.address)
    return amount, client.game.withdraw_credit() if amount else None


def withdraw_above(client: Client, kept: int) -> tuple[int, Receipt | None]:
    """Take what is free beyond `kept` token units out of the vault; how much it was, and the transaction if any."""
    amount = client.vault.free(client.address) - kept
    if amount <= 0:
        return 0, None
    return amount, client.vault.withdraw(amount)
