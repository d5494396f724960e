"""A seat that replays nothing and attests a digest of made-up segment roots.

The seat can open that digest to a look, because it has the segment roots and the secret. But it cannot prove
that the digest contains any chunk of the solver's states.
"""

from __future__ import annotations

import secrets
from argparse import Namespace

from protocol.chain.client import Client
from protocol.chain.views import Seat, TaskStatus
from protocol.commitments.digests import seat_digest, segment_path
from protocol.dispute.looks import Look
from protocol.errors import ExitCode
from protocol.node.home import Home
from tests.adversaries.machines import Machine
from tests.adversaries.seats import own_seat, seated
from tests.adversaries.waiting import until
from verifier.salts import salted, secret_of

RUBBER_STAMP = "rubber-stamp"


class RubberStamp:
    """The seat of the client's account in a task, with random segment roots and a random result to attest."""

    def __init__(self, client: Client, task: int) -> None:
        self._client = client
        self._task = task
        self.seat = own_seat(client, task)
        self._segments = [secrets.token_bytes(32) for _ in client.audit.segments(task, self.seat.number)]
        self._result = secrets.token_bytes(32)

    def attest(self) -> Seat:
        """Attest the made-up digest; returns the seat."""
        own = salted(self._client, self._task, self.seat, self._client.audit.audit(self._task).seed)
        digest = seat_digest(self._segments, self._result)
        self._client.audit.attest(self._task, self.seat.number, digest, own.hash)
        return self.seat

    def reveal(self) -> bool:
        """Open the digest to every look at this seat that has not been answered yet. Returns whether any look
        at this seat exists, answered or not.
        """
        each, calls = len(self._segments), self._client.looks
        own = [
            look
            for look in self._client.audit.looks(self._task)
            if Look.of(look.number).looked_at(each) == self.seat.number
        ]
        for look in own:
            if calls.look(self._task, look.number).revealed is None:
                index, _ = Look.of(look.number).leaf(each)
                path = segment_path(self._segments, self._result, index)
                secret = secret_of(self._client, self._task, self.seat.number)
                digest = seat_digest(self._segments, self._result)
                calls.reveal(self._task, look.number, secret, digest, self._segments[index], path)
        return bool(own)


def stamp(options: Namespace, home: Home, _machine: Machine) -> ExitCode:
    """Wait for a seat in the task, attest it unchecked, wait for a look, and open the digest to it. Stops
    waiting for a look when the task is over.
    """
    (task,) = options.task
    with seated(options, home, task) as (client, _):
        seat = RubberStamp(client, task)
        seat.attest()

        def is_over() -> bool:
            return seat.reveal() or client.market.task(task).status is not TaskStatus.SUBMITTED

        until("a look", is_over)
    return ExitCode.FINE
