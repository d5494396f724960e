"""Shaped links have their stated rates for one connection and for several, whatever their delays."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from benchmarks.lanes.shaping import Link, Network, Path
from tests.listener import Handler, Listener
from tests.timing import require_below

BYTES = 250_000
MBIT = 4.0
ALONE = BYTES * 8 / (MBIT * 1e6)
"""Seconds that one transfer of `BYTES` takes if no other uses its links."""


class Sending(Handler):
    """Answers everything with `BYTES` zeros."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", str(BYTES))
        self.end_headers()
        self.wfile.write(bytes(BYTES))


@pytest.fixture
def upstream() -> Iterator[str]:
    listener = Listener(Sending, None)
    yield listener.url
    listener.close()


@pytest.mark.parametrize("delay", [0.0, 0.05])
@pytest.mark.parametrize("connections", [1, 3])
def test_connections_share_the_rate_of_two_links(upstream: str, connections: int, delay: float) -> None:
    least = connections * ALONE + 2 * delay

    def measured() -> float:
        links = Link(MBIT), Link(MBIT)
        with Network() as network, ThreadPoolExecutor(connections) as pool:
            url = network.address(upstream, Path(links, delay=delay))
            began = time.monotonic()
            lengths = list(pool.map(lambda _: len(httpx.get(url, timeout=60).content), range(connections)))
            took = time.monotonic() - began
        assert lengths == [BYTES] * connections
        assert all(link.passed >= connections * BYTES for link in links)
        assert took > 0.95 * least
        return took

    require_below(1.5 * least + 0.5, measured)


def test_the_slower_of_two_links_counts(upstream: str) -> None:
    def measured() -> float:
        with Network() as network:
            url = network.address(upstream, Path((Link(MBIT), Link(MBIT / 2))))
            began = time.monotonic()
            assert len(httpx.get(url, timeout=60).content) == BYTES
            took = time.monotonic() - began
        assert took > 1.9 * ALONE
        return took

    require_below(3 * ALONE + 0.5, measured)
