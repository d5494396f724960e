"""The ledger of an account's tokens and coin in one deployment: its entries, and sums of them. Pure.

Tokens are those in the vault: deposited and withdrawn, locked and returned, earned and lost. Coin is spent on
the account's own transactions. Times are seconds since 1970; months are those of UTC.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum


class Kind(StrEnum):
    """The kind of an entry. Tokens in a lock of this account are RELEASED back to it, LOST to another
    account, or BURNED. Tokens from the locks of others are EARNED.
    """

    DEPOSITED = "deposited"
    WITHDRAWN = "withdrawn"
    LOCKED = "locked"
    RELEASED = "released"
    EARNED = "earned"
    LOST = "lost"
    BURNED = "burned"


@dataclass(frozen=True, slots=True)
class Flow:
    """Token `units` that were moved by the event with log index `place` in a block. `task` is 0 if no task
    is involved, `lock` is 0 if no lock of this account is involved.
    """

    block: int
    place: int
    time: int
    task: int
    kind: Kind
    units: int
    lock: int
    transaction: str


@dataclass(frozen=True, slots=True)
class Spent:
    """A mined transaction of this account. `gas` was used at `price` wei each; `fee` is the total in wei,
    including a rollup's charge for its data. `value` is the wei that the account sent with the transaction, 0
    if it failed. `credit` is the wei that the transaction withdrew from the account's credit in the
    contracts.
    """

    transaction: str
    nonce: int
    block: int
    time: int
    task: int
    what: str
    succeeded: bool
    gas: int
    price: int
    fee: int
    value: int
    credit: int


@dataclass(frozen=True, slots=True)
class Sums:
    """Token units and wei of some entries. `locked` is the amount locked less the amount unlocked: the
    present lock, if all entries are summed. `burned` and `lost` are from this account's own locks.
    """

    earned: int = 0
    lost: int = 0
    burned: int = 0
    locked: int = 0
    deposited: int = 0
    withdrawn: int = 0
    released: int = 0
    gas: int = 0
    fee: int = 0
    value: int = 0
    credit: int = 0

    @property
    def free(self) -> int:
        """Token units that are free in the vault according to the entries."""
        return self.deposited - self.withdrawn + self.earned - self.lost - self.burned - self.locked

    @property
    def coin(self) -> int:
        """Wei that the entries have cost in all."""
        return self.fee + self.value - self.credit

    @property
    def income(self) -> int:
        """Token units that the entries have brought. Coin does not count."""
        return self.earned - self.lost - self.burned

    def add(self, entry: Flow | Spent) -> Sums:
        """The sums with one more entry."""
        if isinstance(entry, Spent):
            return replace(
                self,
                gas=self.gas + entry.gas,
                fee=self.fee + entry.fee,
                value=self.value + entry.value,
                credit=self.credit + entry.credit,
            )
        name, units = entry.kind.value, entry.units
        changed = {name: getattr(self, name) + units}
        if entry.kind in (Kind.RELEASED, Kind.LOST, Kind.BURNED):
            changed["locked"] = self.locked - units
        return replace(self, **changed)


def total(entries: Iterable[Flow | Spent]) -> Sums:
    """The sums of all entries."""
    sums = Sums()
    for entry in entries:
        sums = sums.add(entry)
    return sums


def by_month_and_task(entries: Iterable[Flow | Spent]) -> dict[tuple[str, int], Sums]:
    """Sums by month ("2026-11") and task, in order; task 0 collects entries without a task."""
    groups: dict[tuple[str, int], Sums] = {}
    for entry in entries:
        key = month_of(entry.time), entry.task
        groups[key] = groups.get(key, Sums()).add(entry)
    return dict(sorted(groups.items()))


def open_locks(flows: Iterable[Flow]) -> dict[int, int]:
    """Maps the number of each lock of this account that still holds tokens to the lock's task."""
    left: dict[int, int] = {}
    tasks: dict[int, int] = {}
    for flow in flows:
        if flow.kind is Kind.LOCKED:
            tasks[flow.lock] = flow.task
            left[flow.lock] = left.get(flow.lock, 0) + flow.units
        elif flow.kind in (Kind.RELEASED, Kind.LOST, Kind.BURNED):
            left[flow.lock] = left.get(flow.lock, 0) - flow.units
    return {lock: task for lock, task in tasks.items() if left[lock] > 0}


def month_of(time: int) -> str:
    """The month of a time: "2026-11"."""
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m")


def written(time: int) -> str:
    """A time in ISO 8601 format, in UTC."""
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
