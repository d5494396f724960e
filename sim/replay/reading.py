"""Reads the chain's balances by place: free, locked by cause, outside the vault, burned, and the vault's total."""

from __future__ import annotations

from collections.abc import Mapping

from protocol.chain.client import Client
from sim.replay.comparison import BOND, BURNED, ESCROW, FREE, HELD, OUTSIDE, REGISTRATION, STAKE, VAULT, Place


class Reader:
    """Reads balances repeatedly. An empty lock always stays empty, so a lock that was read as empty is not
    read again.
    """

    def __init__(self, client: Client, names: Mapping[str, str]) -> None:
        """`names`: the accounts' names by address."""
        self._client = client
        self._names = names
        self._escrows: dict[int, int] = {}
        self._locks: set[int] = set()
        self._newest = 0
        self._accusations: set[int] = set()
        """Numbers of the locks that hold accusations' bonds. In the vault, the module of such a lock is the
        audit board, and so is the module of a registration's lock. So the module alone does not tell which of
        the two a lock is for.
        """

    def balances(self) -> dict[Place, int]:
        """Token units by place. A lock whose owner has no name is listed under the owner's address."""
        client = self._client
        held: dict[Place, int] = {}
        for address, name in self._names.items():
            held[Place(name, FREE)] = client.vault.free(address)
            held[Place(name, OUTSIDE)] = client.token.balance_of(address)
        held[Place(VAULT, BURNED)] = client.vault.burned()
        held[Place(VAULT, HELD)] = client.token.balance_of(client.vault.address)
        self._look_for_locks()
        for number in sorted(self._locks):
            lock = client.vault.lock_of(number)
            if lock.remaining:
                place = Place(self._names.get(lock.owner, lock.owner), self._cause(number, lock.module))
                held[place] = held.get(place, 0) + lock.remaining
            else:
                self._locks.discard(number)
        return held

    def _look_for_locks(self) -> None:
        newest, tasks = self._client.vault.locks(), self._client.market.tasks()
        made = range(self._newest + 1, newest + 1)
        self._locks.update(made)
        self._newest = newest
        for task in range(len(self._escrows) + 1, tasks + 1):
            self._escrows[task] = self._client.market.task(task).escrow
        if made and tasks:
            looks = self._client.audit.looks(tasks)
            self._accusations |= {self._client.looks.look(tasks, look.number).lock for look in looks}

    def _cause(self, number: int, module: str) -> str:
        client = self._client
        if number in self._accusations:
            return BOND
        if module == client.audit.address:
            return REGISTRATION
        if module in (client.game.address, client.commitments.address):
            return BOND
        return ESCROW if number in self._escrows.values() else STAKE
