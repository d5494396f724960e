"""What a node's accounts own, read by few requests: coin, and tokens outside of the vault, free in it, and locked."""

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


@dataclass(frozen=True, slots=True)
class Bound:
    """How much of an account's tokens is bound: numbers of the vault's `locks` (0 for none), and token units
    besides.
    """

    locks: Sequence[int] = ()
    units: int = 0


def read(client: Client, bound: Mapping[str, Bound]) -> dict[str, Balance]:
    """The balances of accounts, by address, with the bound part of their tokens. Inside of a view. Raises
    ChainError.
    """
    each = [[account] for account in bound]
    numbers = sorted({number for one in bound.values() for number in one.locks if number})
    client.token.ask_ahead("balanceOf", *each)
    client.vault.ask_ahead("free", *each)
    client.vault.ask_ahead("lockOf", *([number] for number in numbers))
    queries = [Query("eth_getBalance", (account, "latest"), "eth_getBalance") for account in bound]
    found = {}
    for (account, one), coin in zip(bound.items(), client.connection.request_all(queries), strict=True):
        if isinstance(coin, ChainError):
            raise coin
        locked = sum(client.vault.lock_of(number).remaining for number in one.locks if number)
        found[account] = Balance(
            number_of(coin),
            client.token.balance_of(account),
            client.vault.free(account),
            locked + one.units,
        )
    return found
