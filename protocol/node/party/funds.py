"""A party's tokens: what has to be free in the vault before something is locked, and taking out what is free."""

from __future__ import annotations

from protocol.chain.client import Client
from protocol.chain.parameters import TOKEN
from protocol.chain.receipts import Receipt
from protocol.errors import AssayError


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
            expected=" ".join(f"{amount / TOKEN:g} tokens {purpose}".split()),
            got=f"{have / TOKEN:g}",
            remedy="send tokens to it, on a development chain by `assay mint`",
        )
    client.fund(amount)


def withdraw_above(client: Client, kept: int) -> tuple[int, Receipt | None]:
    """Take what is free beyond `kept` token units out of the vault; how much it was, and the transaction if any."""
    amount = client.vault.free(client.address) - kept
    if amount <= 0:
        return 0, None
    return amount, client.vault.withdraw(amount)
