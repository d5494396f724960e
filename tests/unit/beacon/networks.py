"""A test network, its secret, and its server on a loopback port."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http.client import HTTPConnection
from typing import Any

from protocol.beacon.bn254 import public_key
from protocol.beacon.relays import PATIENCE, Relays
from protocol.beacon.rounds import Network
from protocol.beacon.server import application
from protocol.node.addresses import Address
from protocol.node.serving import Serving
from tests.bls import is_signed

SECRET = 0x5EC2E7
OTHER_SECRET = 0x07E2
GENESIS, PERIOD = 1_000, 10
NETWORK = Network(
    beacon_id="tests",
    public_key=public_key(SECRET).hex(),
    genesis_time=GENESIS,
    period=PERIOD,
    genesis_seed="00" * 32,
)


def relays(addresses: Sequence[str], patience: float = PATIENCE) -> Relays:
    """Relays of the test network. Signatures are checked without a chain."""
    return Relays(NETWORK, addresses, partial(is_signed, NETWORK), patience)


@contextmanager
def beacon(now: Callable[[], int], network: Network = NETWORK, secret: int = SECRET) -> Iterator[str]:
    """Run a beacon server and yield its address."""
    with Serving(application(network, secret, now), "127.0.0.1", 0) as serving:
        yield serving.url


def get(url: str, path: str, method: str = "GET") -> tuple[int, Any]:
    """Return the status and the JSON of the answer. The path is sent unchanged."""
    address = Address.parse(url)
    connection = HTTPConnection(address.host, address.port, timeout=30)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"null")
    finally:
        connection.close()
