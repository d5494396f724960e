"""Checks after every case: every honest account has gained at least what it is due, no tokens appear or
vanish, and the vault holds what its books say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from protocol.chain.accounts import DEVELOPMENT_ACCOUNTS
from protocol.chain.parameters import TOKEN
from protocol.chain.views import Lock
from tests.campaign.world import World, address


@dataclass(frozen=True)
class Books:
    """All tokens at one moment, in token units. `wealth` is what each account has in all: outside the vault,
    free in the vault and locked. The other fields are the vault's totals.
    """

    wealth: Mapping[str, int]
    vault: int
    free: int
    locked: int
    burned: int

    @classmethod
    def of(cls, world: World) -> Self:
        """The books of the contracts' present state."""
        token, vault = world.submitter.token, world.submitter.vault
        accounts = [address(index) for index in range(DEVELOPMENT_ACCOUNTS)]
        locks: list[Lock] = [vault.lock_of(number) for number in range(1, vault.locks() + 1)]
        free = {account: vault.free(account) for account in accounts}
        wealth = {
            account: token.balance_of(account)
            + free[account]
            + sum(lock.remaining for lock in locks if lock.owner == account)
            for account in accounts
        }
        return cls(
            wealth,
            token.balance_of(vault.address),
            sum(free.values()),
            sum(lock.remaining for lock in locks),
            vault.burned(),
        )


def wrongs(world: World, before: Books) -> Iterator[str]:
    """Yields one description for each thing that is wrong at the end of a case."""
    after = Books.of(world)
    if after.vault != after.free + after.locked + after.burned:
        yield f"the vault holds {after.vault}, its books say {after.free} + {after.locked} + {after.burned}"
    if after.vault + _outside(after) != before.vault + _outside(before):
        yield "tokens have come from nowhere, or are gone"
    for name, account in world.honest.items():
        gained, due = after.wealth[account] - before.wealth[account], world.due.get(account, 0)
        if gained < due:
            yield f"{name} has gained {gained / TOKEN:g} tokens, {due / TOKEN:g} were due"


def _outside(books: Books) -> int:
    return sum(books.wealth.values()) - books.free - books.locked
