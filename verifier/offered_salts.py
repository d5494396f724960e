"""Salts of other parties' seats that are offered to this verifier. Each salt is kept until its seat attests,
and is shown to the chain if it fits the attestation.

Salts come over HTTP (`server`). An offer causes no query. Only a salt that fits costs gas, which the main
account pays. An attestation is looked up once, and again only if a kept salt fits it. The seat that gave away
a fitting salt loses half of its lock.
"""

from __future__ import annotations

import threading
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count

from protocol.chain.client import Client
from protocol.chain.errors import Reverted
from protocol.chain.views import Seat, TaskStatus
from protocol.dispute.keys import salt_hash
from protocol.node import logs
from protocol.node.party.exits import Observation
from verifier.database import Database
from verifier.errors import SaltRefused, TooManySalts
from verifier.informing import Attested, Informing, require_seat, stands
from verifier.jobs import Job
from verifier.metrics import Metrics

SALTS_A_SEAT = 16
"""The most salts that are kept for a seat while its attestation is not known. Once the attestation is known,
salts that do not fit it are dropped, and only a fitting salt is accepted. So a flood of salts cannot keep the
right one out for good.
"""


@dataclass(slots=True)
class _Watched:
    """An open task: its seats as the chain last showed them, and the attestations found for them."""

    seats: Sequence[Seat] = ()
    attested: Attested | None = None
    """The attestations found. Used by the jobs only, one of which runs at a time."""
    known: dict[int, tuple[Seat, bytes]] = field(default_factory=dict)
    """By seat number: the seat as it was when it attested, and the hash of its salt."""
    turns: dict[int, int] = field(default_factory=dict)
    """By seat number: the position of the seat's last job in the order of all jobs. It tells which seat's
    last job was longest ago.
    """

    def salt_hash_of(self, seat: Seat) -> bytes | None:
        """The salt hash of the seat's attestation; None if it is not known. If the seat was drawn again, its
        `until` differs from that of the seat that attested, so the result is None.
        """
        known = self.known.get(seat.number)
        return known[1] if known is not None and known[0] == seat else None


class OfferedSalts:
    """The salts that were offered for the seats of open tasks. Salts for seats of the `own` accounts are
    refused. `offer` may be called from any thread; `see`, `jobs` and `forget` from the loop's thread. The
    jobs run one at a time, in any thread.
    """

    def __init__(self, client: Client, own: Container[str], database: Database, metrics: Metrics) -> None:
        self._client = client
        self._own = own
        self._database = database
        self._metrics = metrics
        self._lock = threading.Lock()
        """Protects the salts and seats. Never held during a query to the chain."""
        self._tasks: dict[int, _Watched] = {}
        self._turns = count(1)
        self._log = logs.get("verifier.informing").bind(account=client.address)
        self._count()

    def offer(self, task: int, seat: int, salt: bytes) -> None:
        """Keep a salt for a drawn seat until it has attested. Raises SaltRefused, TooManySalts."""
        what = f"salt for task {task}, seat {seat}"
        with self._lock:
            watched = self._tasks.get(task, _Watched())
            due = watched.salt_hash_of(require_seat(task, seat, watched.seats, self._own))
            if due is not None and salt_hash(salt) != due:
                raise SaltRefused(
                    what,
                    expected="the salt under which the seat attested",
                    got="another",
                    remedy="offer it again if the seat is drawn again",
                )
            kept = self._database.salts(task, seat)
            if salt in kept:
                return
            if due is None and len(kept) >= SALTS_A_SEAT:
                raise TooManySalts(
                    what,
                    expected=f"at most {SALTS_A_SEAT}",
                    got="one more",
                    remedy="offer it again once the seat is attested: then those that do not fit are dropped",
                )
            self._database.put_salt(task, seat, salt)
        self._count()

    def see(self, seen: Observation) -> None:
        """Record a task's seats as this observation of the chain shows them."""
        with self._lock:
            if seen.view.status is TaskStatus.SUBMITTED:
                self._tasks.setdefault(seen.view.task, _Watched()).seats = seen.seats
            else:
                self._tasks.pop(seen.view.task, None)

    def jobs(self) -> list[Job]:
        """One job for each seat that has attested and for which salts are kept. The job informs on the seat
        if one of these salts fits. The job of the seat whose last job was longest ago comes first.
        """
        due = [
            (watched.turns.get(seat.number, 0), task, seat, watched)
            for task, watched in self._tasks.items()
            for seat in watched.seats
            if seat.attested and self._database.salts(task, seat.number)
        ]
        due.sort(key=lambda one: one[0])
        return [
            Job(task, f"inform {seat.number}", partial(self._inform, task, seat, watched))
            for _, task, seat, watched in due
        ]

    def forget(self, task: int) -> None:
        """Drop the data of a task that is over, except its salts, which the database drops."""
        with self._lock:
            self._tasks.pop(task, None)
        self._count()

    def _inform(self, task: int, found: Seat, watched: _Watched) -> None:
        """Drop salts that do not fit the attestation, and inform with one that fits. Raises ChainError."""
        seat = found.number
        watched.turns[seat] = next(self._turns)
        if watched.attested is None:
            watched.attested = Attested(self._client, task)
        attestation = watched.attested.of(seat)
        if attestation is None:
            return  # undone by a re-organisation since the look
        if not stands(self._client, task, seat, attestation):
            return  # the node lags, or another informer was faster
        with self._lock:  # later offers must fit; earlier ones that do not are dropped below
            watched.known[seat] = found, attestation.salt_hash
        for salt in self._database.salts(task, seat):
            if salt_hash(salt) != attestation.salt_hash:
                self._database.drop_salt(task, seat, salt)
                continue
            informing = Informing(self._client, task, seat, attestation, salt)
            try:
                informed = informing.advance() is not None
            except Reverted:
                if stands(self._client, task, seat, attestation):
                    raise
                self._log.warning("somebody else informed first", task=task, seat=seat)
                continue
            except SaltRefused as error:  # too late, but kept: a game may open or a seat be emptied
                self._log.debug("not informed", task=task, seat=seat, error=str(error))
                continue
            if informed:
                self._database.drop_salt(task, seat, salt)
                self._metrics.informed.inc()
        self._count()

    def _count(self) -> None:
        self._metrics.salts.set(self._database.count_salts())
