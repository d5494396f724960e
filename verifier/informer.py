"""Salts that others give away: kept from their offer to the seat's attestation, and shown if they fit it.

They come over HTTP (`server`). Only one that fits costs gas, of the main account. Nothing is asked of the chain for an
offer, so offers cost a stranger more than this node; and a salt that fits costs whoever offers it half of a lock.
"""

from __future__ import annotations

import threading
from collections.abc import Container, Iterator, Sequence
from functools import partial

from protocol.chain.client import Client
from protocol.chain.errors import Reverted
from protocol.chain.views import Seat, TaskStatus
from protocol.dispute.keys import salt_hash
from protocol.node import logs
from protocol.node.party.exits import Observation
from verifier.database import Database
from verifier.errors import TooManySalts
from verifier.informing import Attestation, Attested, Informing, require_seat, stands
from verifier.jobs import Job
from verifier.metrics import Metrics

SALTS_A_SEAT = 16
"""Kept before the seat is attested. Afterwards those that do not fit are dropped at the next look, so that no flood
keeps the right one out.
"""


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
