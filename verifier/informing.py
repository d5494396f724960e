"""Informing: who shows the salt of an attested seat while its task is not over takes half of the seat's lock
(dispute.md section 3).

So whoever computed a seat's digest for it can do so, and anybody to whom the salt was given. Salts are offered over
HTTP, kept, and compared with what is attested; only one that fits costs gas: a commitment, and in a later block the
call itself, both from the main account. The digest that the call needs comes from the chain. Nothing is asked of the
chain for an offer, so offers cost a stranger more than this node.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from protocol.chain.client import Client
from protocol.chain.errors import Reverted
from protocol.chain.events import Follower
from protocol.chain.parameters import TOKEN
from protocol.chain.receipts import Receipt
from protocol.chain.views import Seat, TaskStatus
from protocol.dispute.keys import attestation_word, informing_commitment, salt_hash
from protocol.node import logs
from protocol.node.party.exits import Observation
from verifier.database import Database
from verifier.errors import SaltRefused, TooManySalts
from verifier.jobs import Job
from verifier.metrics import Metrics

SALTS_A_SEAT = 16
"""Kept before the seat is attested. Afterwards those that do not fit are dropped at the next look, so that no flood
keeps the right one out.
"""
_SALT = re.compile("(0x)?[0-9a-fA-F]{64}")


@dataclass(frozen=True, slots=True)
class Attestation:
    """What a seat attested."""

    digest: bytes
    salt_hash: bytes


class Attested:
    """The attestations of a task's seats, the latest of each, from the board's events since its first draw."""

    def __init__(self, client: Client, task: int) -> None:
        audit = client.audit
        (topic,) = (topic for topic, event in audit.contract.events.items() if event["name"] == "Attested")
        first = first_block(client, audit.audit(task).drawn_at)
        self._follower = Follower(
            client.connection, {audit.address: audit.contract}, first, topics=[topic, task.to_bytes(32)]
        )
        self._seats: dict[int, Attestation] = {}

    def of(self, seat: int) -> Attestation | None:
        """That of a seat; what an informer or a re-organisation has taken away is still told. Raises ChainError."""
        for event in self._follower.poll().events:
            told = event.arguments
            self._seats[told["seat"]] = Attestation(told["digest"], told["saltHash"])
        return self._seats.get(seat)


def stands(client: Client, task: int, seat: int, found: Attestation) -> bool:
    """Whether this is what the seat attests now. Raises ChainError."""
    return client.audit.attestation(task, seat) == attestation_word(found.digest, found.salt_hash)


def first_block(client: Client, time: int) -> int:
    """The first block since the deployment that is not older than `time`, seconds since 1970. Raises ChainError."""
    low, high = client.deployment.block, client.connection.block().number
    while low < high:
        middle = (low + high) // 2
        if client.connection.block(middle).time < time:
            low = middle + 1
        else:
            high = middle
    return low


class Informing:
    """One seat whose salt is known: the two calls, each sent once, whatever is restarted."""

    def __init__(self, client: Client, task: int, seat: int, attestation: Attestation, salt: bytes) -> None:
        self._client = client
        self._call = task, seat, attestation.digest, salt
        self._log = logs.get("verifier.informing").bind(task=task, seat=seat, account=client.address)

    def advance(self) -> Receipt | None:
        """The next call; the receipt of the one that took the lock's half. Raises ChainError."""
        looks = self._client.looks
        sent = looks.interrupted("inform", *self._call) is not None  # nobody has seen its end
        if not sent and self._client.connection.block().number <= self._committed_in():
            return None  # the contract wants a later block
        receipt = looks.inform(*self._call)
        paid = looks.event(receipt, "Informed").arguments["paid"]
        self._log.info("informed", tokens=paid / TOKEN, gas=receipt.gas_used)
        return receipt

    def _committed_in(self) -> int:
        """The commitment's block; it is made if there is none."""
        client, (task, seat, _, salt) = self._client, self._call
        commitment = informing_commitment(
            client.deployment.chain_id, client.looks.address, task, seat, client.address, salt
        )
        block = client.looks.committed_in(commitment)
        if not block:
            made = client.looks.commit_informing(commitment)
            self._log.info("informing", gas=made.gas_used)
            block = made.block
        return block


class Informer:
    """The salts that were offered for the seats of open tasks; `own` accounts' salts are refused. `offer` may be called
    from any thread, `jobs` and `forget` from the loop's.
    """

    def __init__(self, client: Client, own: Container[str], database: Database, metrics: Metrics) -> None:
        self._client = client
        self._own = own
        self._database = database
        self._metrics = metrics
        self._lock = threading.Lock()
        self._reading = threading.Lock()
        self._seats: dict[int, Sequence[Seat]] = {}
        self._attested: dict[int, Attested] = {}
        self._log = logs.get("verifier.informing").bind(account=client.address)
        self._count()

    def offer(self, task: int, seat: int, salt: bytes) -> None:
        """Keep a salt for a seat that was drawn, until it is attested. Raises SaltRefused, TooManySalts."""
        with self._lock:
            require_seat(task, seat, self._seats.get(task, ()), self._own)
            kept = self._database.salts(task, seat)
            if salt in kept:
                return
            if len(kept) >= SALTS_A_SEAT:
                raise TooManySalts(
                    f"salt for task {task}, seat {seat}",
                    expected=f"at most {SALTS_A_SEAT}",
                    got="one more",
                    remedy="offer it again once the seat is attested: then those that do not fit are dropped",
                )
            self._database.put_salt(task, seat, salt)
        self._count()

    def jobs(self, seen: Observation) -> Iterator[Job]:
        """Informing on the attested seats of a task for which salts were offered."""
        task, is_open = seen.view.task, seen.view.status is TaskStatus.SUBMITTED
        with self._lock:
            self._seats[task] = seen.seats if is_open else ()
        for seat in self._seats[task]:
            if seat.attested and self._database.salts(task, seat.number):
                yield Job(task, f"inform {seat.number}", partial(self._inform, task, seat.number))

    def forget(self, task: int) -> None:
        """The task is over; its salts are the database's to drop."""
        with self._lock:
            self._seats.pop(task, None)
        with self._reading:
            self._attested.pop(task, None)
        self._count()

    def _inform(self, task: int, seat: int) -> None:
        """Drop what does not fit the attestation, and go on with what does. Raises ChainError."""
        found = self._attestation(task, seat)
        if found is None:
            return  # taken back by a re-organisation since the look
        if not stands(self._client, task, seat, found):
            return  # the node is behind, or somebody was faster
        for salt in self._database.salts(task, seat):
            if salt_hash(salt) != found.salt_hash:
                self._database.drop_salt(task, seat, salt)
                continue
            informing = Informing(self._client, task, seat, found, salt)
            try:
                informed = informing.advance() is not None
            except Reverted:
                if stands(self._client, task, seat, found):
                    raise
                self._log.warning("somebody else informed first", task=task, seat=seat)
                continue
            if informed:
                self._database.drop_salt(task, seat, salt)
                self._metrics.informed.inc()
        self._count()

    def _attestation(self, task: int, seat: int) -> Attestation | None:
        with self._reading:
            if task not in self._attested:
                self._attested[task] = Attested(self._client, task)
            return self._attested[task].of(seat)

    def _count(self) -> None:
        self._metrics.salts.set(self._database.count_salts())


def require_seat(task: int, number: int, seats: Sequence[Seat], own: Container[str]) -> Seat:
    """The seat of this number. Raises SaltRefused if nobody else sits in it."""
    what = f"salt for task {task}, seat {number}"
    if not 0 <= number < len(seats) or seats[number].is_empty:
        raise SaltRefused(
            what,
            expected="a seat that somebody was drawn for, in a task that is submitted and watched here",
            got="none" if seats else "no such task",
            remedy="offer it after the draw, and before the task is over",
        )
    if seats[number].account in own:
        raise SaltRefused(
            what,
            expected="a seat of another account",
            got="one's own",
            remedy="show it to nobody: who informs of itself loses half of the lock",
        )
    return seats[number]


def parsed_salt(text: str) -> bytes:
    """A salt as it is written, with or without 0x. Raises SaltRefused."""
    if not _SALT.fullmatch(text):
        raise SaltRefused(
            "salt",
            expected="64 hexadecimal digits",
            got=f"{len(text)} characters",
            remedy="pass the salt itself, not its hash",
        )
    return bytes.fromhex(text.removeprefix("0x"))


def inform(client: Client, task: int, seat: int, salt: bytes, wait: Callable[[], object]) -> Receipt:
    """Inform now, by hand; `wait` passes the time between two blocks. Raises SaltRefused, ChainError."""
    is_open = client.market.task(task).status is TaskStatus.SUBMITTED
    sits = require_seat(task, seat, client.audit.seats(task) if is_open else (), {client.address})
    found = Attested(client, task).of(seat) if sits.attested else None
    if found is None or found.salt_hash != salt_hash(salt):
        raise SaltRefused(
            f"salt for task {task}, seat {seat}",
            expected="the salt under which the seat attested",
            got="no attestation yet" if found is None else "another",
            remedy="nothing was sent: wait for the attestation, or offer it to the service of a running verifier",
        )
    informing = Informing(client, task, seat, found, salt)
    while (receipt := informing.advance()) is None:
        wait()
    return receipt
