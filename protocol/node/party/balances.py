"""Balances of a node's accounts, read with few requests: coin, tokens outside the vault, tokens free in the
vault, and locked tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from protocol.chain.blocks import number_of
from protocol.chain.client import Client
from protocol.chain.errors import ChainError
from protocol.chain.rpc import Query


@dataclass(frozen=True, slots=True)
class Balance:
    """An account's balance: `coin` in wei, the others in token units. `locked` tokens are at risk: stakes,
    penalties, bonds.
    """

    coin: int
    wallet: int
    free: int
    locked: int

    @property
    def tokens(self) -> int:
        """All tokens of the account."""
        return self.wallet + self.free + self.locked


@dataclass(frozen=True, slots=True)
class Bound:
    """The bound part of an account's tokens: the amounts in some of the vault's locks, plus `units` token
    units. `locks` has the numbers of the locks; 0 stands for no lock.
    """

    locks: Sequence[int] = ()
    units: int = 0


def read(client: Client, bound: Mapping[str, Bound]) -> dict[str, Balance]:
    """The balances of the accounts in `bound`, by address. `bound` gives the bound part of each account's
    tokens. Call it only inside a view: the tokens are those at the view's block, the coin is that at the
    newest block. Raises ChainError.
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
