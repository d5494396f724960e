"""A seat that replays nothing. A service computes the seat's digest, and needs the seat's salt for that.

The digest is right, and nothing on the chain distinguishes it from an honest one. But any account that shows
the salt to the contracts gets half of the seat's lock. So the service offers the salt to verifiers, and one
of them shows it. The seat and the service run in one process, the verifiers in others.
"""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from protocol.chain.client import Client
from protocol.chain.views import Seat
from protocol.commitments.digests import Digester, seat_digest
from protocol.errors import ExitCode
from protocol.node.home import Home
from tests.adversaries.machines import Machine
from tests.adversaries.seats import own_seat, seated
from tests.adversaries.waiting import until
from verifier.context import Context
from verifier.findings import Committed, Equal
from verifier.salts import salted
from verifier.strategy import Strategy

OUTSOURCER = "outsourcer"


class DigestService:
    """A service that replays for any party that gives it a salt, and offers the salt to verifiers, whose URLs
    are the `informers`.
    """

    def __init__(self, context: Context, informers: Sequence[str]) -> None:
        self._context = context
        self._informers = informers

    def digest(self, task: int, seat: int, salt: bytes) -> bytes:
        """Offer the salt to every informer, then return the digest that the seat must attest under this
        salt.
        """
        for url in self._informers:
            until_taken(url, task, seat, salt)
        context, view = self._context, self._context.client.market.task(task)
        until("the bundle", partial(context.fetch, task, 0))
        material, committed = context.load(task), Committed(view.root, view.size)
        digests: list[bytes] = []
        for segment in (*context.segments(task, seat), view.size):
            until("the solver", partial(material.replayer.ask, committed, [segment]))
            found = material.replayer.audit(committed, segment, [Digester(salt, material.terms.thinning)])
            assert isinstance(found, Equal), "this service's solver is honest"
            digests += found.digests
        return seat_digest(digests[:-1], digests[-1])


def offer(url: str, task: int, seat: int, salt: bytes) -> int:
    """Offer a salt to a verifier's server; returns the HTTP status."""
    body = json.dumps({"task": task, "seat": seat, "salt": salt.hex()}).encode()
    request = Request(f"{url}/salts", body, {"content-type": "application/json"})
    try:
        with urlopen(request, timeout=30) as answer:
            return int(answer.status)
    except HTTPError as error:
        return error.code


def until_taken(url: str, task: int, seat: int, salt: bytes) -> None:
    """Offer a salt until it is accepted. At first the verifier may not have seen the draw yet."""
    until("somebody to take the salt", lambda: offer(url, task, seat, salt) == 202)


def attest_by(service: DigestService, client: Client, task: int) -> Seat:
    """Attest the client's seat in a drawn task with the digest that a service computes; returns the seat."""
    seat = own_seat(client, task)
    own = salted(client, task, seat, client.audit.audit(task).seed)
    client.audit.attest(task, seat.number, service.digest(task, seat.number, own.salt), own.hash)
    return seat


def outsource(options: Namespace, home: Home, _machine: Machine) -> ExitCode:
    """Wait for a seat in the task, attest it with the service's digest, and end."""
    (task,) = options.task
    with seated(options, home, task) as (client, settings):
        context = Context.at(home, client, settings, Strategy())
        attest_by(DigestService(context, options.service), client, task)
        context.database.close()
    return ExitCode.FINE
