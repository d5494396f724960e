"""Keeps the ledger, from the vault's events and this account's receipts, up to the newest final block.

Token entries come from events, because other parties also end tasks. Coin entries come from the journal,
which knows every signed transaction. Each entry is booked once, so a node may be killed at any time. `ledger`
adds entries up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from threading import Lock
from typing import Any, Final

from eth_abi.exceptions import DecodingError

from protocol.chain.client import Client
from protocol.chain.connection import BATCH
from protocol.chain.events import Follower, Topics
from protocol.chain.fees import unsigned
from protocol.chain.journal import Entry
from protocol.chain.receipts import Event, Receipt, decode_logs
from solver.database import Booked, Database
from solver.ledger import Flow, Kind, Spent, open_locks

LOCKS: Final = 64
"""Maximum number of locks in one query for events, because nodes limit a query's size."""


class Bookkeeper:
    """Books the tokens and coin of one deployment. The newest deployment's bookkeeper books all transactions
    that the account sent, including token approvals, but no transactions to the contracts in `others`. An
    earlier deployment's bookkeeper has None as `others`. It books only transactions to the contracts of that
    deployment.
    """

    def __init__(self, client: Client, database: Database, others: Iterable[str] | None = ()) -> None:
        self._client = client
        self._database = database
        self._others = None if others is None else frozenset(address.lower() for address in others)
        self._lock = Lock()
        self._times: dict[int, int] = {}

    def book(self) -> Booked:
        """Bring the ledger up to the newest final block. Callable from any thread. Raises ChainError, sqlite3.Error."""
        with self._lock:
            connection, booked = self._client.connection, self._database.booked()
            final = connection.block(connection.final_block())
            if booked is not None and final.number <= booked.block:
                return booked
            entries = self._journal(0 if booked is None else booked.nonce)
            first = self._begin(entries) if booked is None else booked.block + 1
            self._times = {final.number: final.time}
            flows = self._flows(first, final.number)
            spent, nonce = self._spent(entries, final.number)
            upto = Booked(final.number, final.time, nonce if booked is None else max(nonce, booked.nonce))
            self._database.book(flows, spent, upto)
            return upto

    def _journal(self, nonce: int) -> list[Entry]:
        sender = self._client.sender
        return [] if sender is None else sender.journal.signed(nonce)

    def _begin(self, entries: Sequence[Entry]) -> int:
        """The first block to read. It is usually the deployment's block. If the journal has all of the
        account's transactions, and the first of them was mined after that block, it is the block of this
        first transaction.
        """
        deployed = self._client.deployment.block
        mined = [entry.block for entry in entries if entry.block is not None]
        whole = bool(mined) and min(entry.nonce for entry in entries) == 0
        return max(deployed, min(mined)) if whole else deployed

    # ------------------------------------------------------------------ tokens

    def _flows(self, first: int, last: int) -> list[Flow]:
        me = bytes(12) + bytes.fromhex(self._client.address[2:])
        mine = [*self._events(first, last, (None, me)), *self._events(first, last, (None, None, me))]
        tasks = open_locks(self._database.flows())
        own = [event for event in mine if event.name == "Locked"]
        locks = sorted({*tasks, *(event.arguments["lock"] for event in own)})
        for at in range(0, len(locks), LOCKS):
            some = [lock.to_bytes(32, "big") for lock in locks[at : at + LOCKS]]
            mine += self._events(first, last, (None, some))
        by_place = {(event.log.block, event.log.index): event for event in mine}
        events = [event for _, event in sorted(by_place.items())]
        happened = self._receipts(event.log.transaction for event in events)
        flows = []
        for event in events:
            kind, lock = self._kind(event, set(locks))
            task = tasks.get(lock) or _task_of(event, self._told(happened[event.log.transaction]))
            if kind is Kind.LOCKED:
                tasks[lock] = task
            if kind is not None:
                flows.append(self._flow(event, kind, lock, task))
        return flows

    def _events(self, first: int, last: int, topics: Topics) -> list[Event]:
        vault = self._client.vault
        follower = Follower(self._client.connection, {vault.address: vault.contract}, first, topics=topics)
        return list(follower.poll(last).events)

    def _kind(self, event: Event, locks: set[int]) -> tuple[Kind | None, int]:
        """The kind of a vault event for this account (None if it does not concern the account), and the
        number of the account's lock, 0 if none is involved.
        """
        lock = event.arguments.get("lock", 0)
        own, me = lock in locks, self._client.address
        match event.name:
            case "Deposited" | "Withdrawn":
                return Kind(event.name.lower()), 0
            case "Locked":
                return Kind.LOCKED, lock
            case "Paid" if own:
                return (Kind.RELEASED if event.arguments["to"] == me else Kind.LOST), lock
            case "Paid":
                return (Kind.EARNED if event.arguments["to"] == me else None), 0
            case "Released" | "Burned" if own:
                return Kind(event.name.lower()), lock
        return None, 0

    def _flow(self, event: Event, kind: Kind, lock: int, task: int) -> Flow:
        log, units = event.log, event.arguments["amount"]
        own = 0 if kind in (Kind.DEPOSITED, Kind.WITHDRAWN) else task
        return Flow(log.block, log.index, self._time(log.block), own, kind, units, lock, log.transaction)

    # ------------------------------------------------------------------ coin

    def _spent(self, entries: Sequence[Entry], final: int) -> tuple[list[Spent], int]:
        """Two results. The first is the transactions to book: they were mined in blocks up to the final one,
        belong in this ledger, and are not booked yet. The second is the first nonce whose outcome is not
        known.
        """
        done = {one.nonce for one in self._database.spent(min((entry.nonce for entry in entries), default=0))}
        asked = [entry for entry in entries if entry.nonce not in done]
        receipts = self._receipts(entry.hash for entry in asked)
        spent = []
        for entry in asked:
            found = receipts[entry.hash]
            if found is None or int(found["blockNumber"], 16) > final:
                continue
            done.add(entry.nonce)
            fields = unsigned(entry.raw, self._client.connection.chain_id)
            to = "0x" + bytes(fields["to"]).hex() if isinstance(fields["to"], bytes) else str(fields["to"])
            if self._is_here(to.lower()):
                spent.append(self._one(entry, found, fields, to.lower()))
        nonces = sorted({entry.nonce for entry in entries})
        open_ = [nonce for nonce in nonces if nonce not in done]
        return spent, min(open_, default=nonces[-1] + 1 if nonces else 0)

    def _is_here(self, to: str) -> bool:
        """Whether transactions to an address belong in this ledger."""
        if self._others is not None:
            return to not in self._others
        own = (*self._client.contracts, self._client.beacon.address)
        return to in {address.lower() for address in own}

    def _one(self, entry: Entry, found: dict[str, Any], fields: dict[str, Any], to: str) -> Spent:
        receipt = Receipt.read(found, entry.label)
        events = self._told(found)
        gas, price = receipt.gas_used, int(found.get("effectiveGasPrice", "0x0"), 16)
        credit = sum(event.arguments["amount"] for event in events if event.name == "CreditWithdrawn")
        return Spent(
            receipt.transaction,
            entry.nonce,
            receipt.block,
            self._time(receipt.block),
            self._task_called(to, bytes(fields["data"])) or next(_tasks(events), 0),
            entry.label,
            receipt.success,
            gas,
            price,
            # A rollup charges for a transaction's data in addition to its gas.
            gas * price + int(found.get("l1Fee") or "0x0", 16),
            int(fields["value"]) if receipt.success else 0,
            credit,
        )

    def _task_called(self, to: str, data: bytes) -> int:
        """The task that a call names, or the task of the game that the call names; 0 if it names neither."""
        contracts = {address.lower(): contract for address, contract in self._client.contracts.items()}
        try:
            arguments = contracts[to].arguments(data)
        except (KeyError, DecodingError):
            return 0
        if to == self._client.game.address.lower() and isinstance(arguments.get("game"), int):
            return self._client.game.game(arguments["game"]).task
        task = arguments.get("task", 0)
        return task if isinstance(task, int) else 0

    # ------------------------------------------------------------------ both

    def _receipts(self, transactions: Iterable[str]) -> dict[str, dict[str, Any] | None]:
        wanted = list(dict.fromkeys(transactions))
        found: dict[str, dict[str, Any] | None] = {}
        for at in range(0, len(wanted), BATCH):
            some = wanted[at : at + BATCH]
            found.update(zip(some, self._client.connection.receipts(some), strict=True))
        return found

    def _told(self, found: dict[str, Any] | None) -> list[Event]:
        """The events of this deployment in a receipt."""
        return [] if found is None else decode_logs(Receipt.read(found, "").logs, self._client.contracts)

    def _time(self, block: int) -> int:
        if block not in self._times:
            self._times[block] = self._client.connection.block(block).time
        return self._times[block]


def _task_of(event: Event, told: Sequence[Event]) -> int:
    """The task that a vault event concerns; 0 if none is known. It is the task named by the nearest later
    event of the same transaction, otherwise by the nearest earlier one, because contracts pay before they
    emit their own event.
    """
    after = [other for other in told if other.log.index > event.log.index]
    before = [other for other in reversed(told) if other.log.index < event.log.index]
    return next(_tasks([*after, *before]), 0)


def _tasks(events: Iterable[Event]) -> Iterator[int]:
    for event in events:
        if isinstance(event.arguments.get("task"), int):
            yield event.arguments["task"]
