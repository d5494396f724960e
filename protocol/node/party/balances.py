"""What a node's accounts own, read by few requests: coin, tokens outside of the vault, free in it, and locked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from protocol.chain.blocks import number_of
from protocol.chain.client import Client
from protocol.chain.errors import ChainError
from protocol.chain.rpc import Query


@dataclass(frozen=True, slots=True)
class Balance:
    """`coin` in wei, the others in token units. What is `locked` can be lost: stakes, penalties, bonds."""

    coin: int
    wallet: int
    free: int
    locked: int

    @property
    def tokens(self) -> int:
        """All of them."""
        return self.wallet + self.free + self.locked


def read(client: Client, locks: Mapping[str, Sequence[int]]) -> dict[str, Balance]:
    """The balances of accounts, by address, with the numbers of the vault's locks that are theirs (0 for none). Inside
    of a view. Raises ChainError.
    """
    accounts = list(locks)
    each = [[account] for account in accounts]
    numbers = sorted({number for some in locks.values() for number in some if number})
    client.token.ask_ahead("balanceOf", *each)
    client.vault.ask_ahead("free", *each)
    client.vault.ask_ahead("lockOf", *([number] for number in numbers))
    queries = [Query("eth_getBalance", (account, "latest"), "eth_getBalance") for account in accounts]
    found = {}
    for account, coin in zip(accounts, client.connection.request_all(queries), strict=True):
        if isinstance(coin, ChainError):
            raise coin
        found[account] = Balance(
            number_of(coin),
            client.token.balance_of(account),
            client.vault.free(account),
            sum(client.vault.lock_of(number).remaining for number in locks[account] if number),
        )
    return found
