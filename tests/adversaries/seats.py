"""The seat that a cheat's development account holds."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager

from protocol.chain.client import Client
from protocol.chain.views import Seat
from protocol.node.home import Home
from tests.adversaries.nodes import connected
from tests.adversaries.waiting import until
from verifier.settings import VerifierSettings


@contextmanager
def seated(options: Namespace, home: Home, task: int) -> Iterator[tuple[Client, VerifierSettings]]:
    """Yields the account's client and settings, once the account has a seat in the task."""
    with connected(VerifierSettings, "verifier", options, home) as (client, settings):
        until("a seat", lambda: any(seat.account == client.address for seat in client.audit.seats(task)))
        yield client, settings


def own_seat(client: Client, task: int) -> Seat:
    """The client's seat in the task. The client must have exactly one seat there."""
    (seat,) = (one for one in client.audit.seats(task) if one.account == client.address)
    return seat
