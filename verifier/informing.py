"""Informing: while a task is not over, an account that shows the salt of an attested seat takes half of that
seat's lock (audit.md section 5).

Any service that computed a seat's digest can inform, and so can anyone who was given the salt. To inform, an
account sends a commitment and, in a later block, the call itself. The digest that the call needs comes from
the chain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass

from protocol.chain.client import Client
from protocol.chain.events import Follower, first_block
from protocol.chain.parameters import TOKEN
from protocol.chain.receipts import Receipt
from protocol.chain.views import Seat, TaskStatus
from protocol.dispute.keys import attestation_word, informing_commitment, salt_hash
from protocol.node import logs
from protocol.node.words import duration
from protocol.tasks.task import INCLUSION_BLOCKS
from verifier.errors import SaltRefused

BLOCKS = INCLUSION_BLOCKS + 1
"""Blocks until the call is mined: the commitment may just miss the next block, and the call needs a later
block than the commitment.
"""
_SALT = re.compile("(0x)?[0-9a-fA-F]{64}")


@dataclass(frozen=True, slots=True)
class Attestation:
    """The digest and salt hash that a seat has attested."""

    digest: bytes
    salt_hash: bytes


class Attested:
    """The latest attestation of each seat of a task, according to the board's events since the task's first draw."""

    def __init__(self, client: Client, task: int) -> None:
        audit = client.audit
        (topic,) = (topic for topic, event in audit.contract.events.items() if event["name"] == "Attested")
        first = first_block(client.connection, client.deployment.block, audit.audit(task).drawn_at)
        self._follower = Follower(
            client.connection, {audit.address: audit.contract}, first, topics=[topic, task.to_bytes(32)]
        )
        self._seats: dict[int, Attestation] = {}

    def of(self, seat: int) -> Attestation | None:
        """The seat's latest attestation among the events, even if an informer or a re-organisation has
        removed it since; None if the events contain no attestation of the seat. Raises ChainError.
        """
        for event in self._follower.poll().events:
            told = event.arguments
            self._seats[told["seat"]] = Attestation(told["digest"], told["saltHash"])
        return self._seats.get(seat)


def stands(client: Client, task: int, seat: int, found: Attestation) -> bool:
    """Whether `found` is the seat's present attestation. Raises ChainError."""
    return client.audit.attestation(task, seat) == attestation_word(found.digest, found.salt_hash)


class Informing:
    """Informs on one seat whose salt is known. This takes two calls to the contract: the commitment, then the
    call that shows the salt. Each is sent only once, even if the process restarts.
    """

    def __init__(self, client: Client, task: int, seat: int, attestation: Attestation, salt: bytes) -> None:
        self._client = client
        self._call = task, seat, attestation.digest, salt
        self._log = logs.get("verifier.informing").bind(task=task, seat=seat, account=client.address)

    def advance(self) -> Receipt | None:
        """Send the next call. Returns the receipt of the call that took half of the lock, otherwise None.
        Raises ChainError, and SaltRefused if it is too late.
        """
        looks = self._client.looks
        sent = looks.interrupted("inform", *self._call) is not None  # sent by an earlier process
        if not sent and self._client.connection.block().number <= self._committed_in():
            return None  # the contract requires a later block
        if not sent:
            _require_before_looks(self._client, *self._call[:2], 0)
        receipt = looks.inform(*self._call)
        paid = looks.event(receipt, "Informed").arguments["paid"]
        self._log.info("informed", tokens=paid / TOKEN, gas=receipt.gas_used)
        return receipt

    def _committed_in(self) -> int:
        """The block of the commitment. If there is no commitment yet, it is made now."""
        client, (task, seat, _, salt) = self._client, self._call
        commitment = informing_commitment(
            client.deployment.chain_id, client.looks.address, task, seat, client.address, salt
        )
        block = client.looks.committed_in(commitment)
        if not block:
            _require_time(client, task, seat)
            made = client.looks.commit_informing(commitment)
            self._log.info("informing", gas=made.gas_used)
            block = made.block
        return block


def _require_time(client: Client, task: int, seat: int) -> None:
    """Raise SaltRefused if too little time is left: by the time the call is mined, the task could be settled
    or the salts could be public. Raises ChainError.
    """
    view, least = client.market.task(task), BLOCKS * client.connection.block_time
    left = view.challenge_until - client.now()
    if left < least and not view.open_games and all(one.attested for one in client.audit.seats(task)):
        raise SaltRefused(
            f"salt for task {task}, seat {seat}",
            expected=f"{duration(least)}, {BLOCKS} blocks, before the task can be settled",
            got=duration(left),
            remedy="nothing was sent: offer a salt earlier",
        )
    _require_before_looks(client, task, seat, least)


def _require_before_looks(client: Client, task: int, seat: int, least: float) -> None:
    """Raise SaltRefused if looks were requested, and the round that picks the first looks is over or at most
    `least` seconds away. Looks reveal salts, and from then on the board pays nothing for a salt
    (`AuditBoard.caught`). Raises ChainError.
    """
    audit = client.audit.audit(task)
    if not audit.level and not audit.picked_at:
        return
    until = client.deployment.beacon.time_of(audit.round) if audit.pending and not audit.picked_at else 0
    if client.now() + least >= until:
        raise SaltRefused(
            f"salt for task {task}, seat {seat}",
            expected="the call to be mined before the round that picks the first looks, because looks reveal salts",
            got="the round is published, or about to be",
            remedy="nothing was sent: offer a salt earlier",
        )


def require_seat(task: int, number: int, seats: Sequence[Seat], own: Container[str]) -> Seat:
    """The seat of this number. Raises SaltRefused if there is none, or if it is empty or taken by one of
    our accounts.
    """
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
            got="your own account",
            remedy="show it to nobody: who informs of itself loses half of the lock",
        )
    return seats[number]


def parsed_salt(text: str) -> bytes:
    """Parse a salt with or without 0x. Raises SaltRefused."""
    if not _SALT.fullmatch(text):
        raise SaltRefused(
            "salt",
            expected="64 hexadecimal digits",
            got=f"{len(text)} characters",
            remedy="pass the salt itself, not its hash",
        )
    return bytes.fromhex(text.removeprefix("0x"))


def inform(client: Client, task: int, seat: int, salt: bytes, wait: Callable[[], object]) -> Receipt:
    """Inform on the seat, for the command `verifier inform`: send the commitment and, in a later block, the
    call. `wait` waits for the next block. Raises SaltRefused, ChainError.
    """
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
