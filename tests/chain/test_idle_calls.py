"""An idle node sends two requests for each block, and one for each look that finds no new block. The number
of past tasks and accounts makes no difference.

Tests mine the blocks and tell the node when to look, so that the numbers are exact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from threading import Semaphore, Thread

import httpx
import pytest

from benchmarks.soak.history import History
from protocol.chain.client import Client, connect
from protocol.chain.deployment import Deployment
from protocol.chain.devnet import Devnet
from protocol.chain.events import Follower
from protocol.chain.parameters import TOKEN
from protocol.chain.transactions import Sending
from protocol.node.home import Home
from protocol.node.party.data import open_database
from protocol.node.party.node import Node
from protocol.node.party.settings import PACE
from protocol.node.stopping import Stop
from solver.node import SolverNode
from solver.settings import SolverSettings
from tests.chain.rounds import signature
from tests.chain.rpc_proxy import RpcProxy
from verifier.database import Database as VerifierDatabase
from verifier.node import VerifierNode
from verifier.only_watch import OnlyWatch
from verifier.settings import VerifierSettings

pytestmark = pytest.mark.chain

BLOCKS = 12
RECEIPT, NONCE = "eth_getTransactionReceipt", "eth_getTransactionCount"
LOOKS = 200
"""A node must be idle within this many looks."""
SENDING = Sending(poll=0.02, look_again=0.0)
"""Makes a sender check for lost transactions at every opportunity."""
HEAD, CALL = "eth_getBlockByNumber", "eth_call"
RELAYS = ("http://127.0.0.1:1",)
"""Beacon relays that are never asked, because nothing is drawn."""


class Paced(Stop):
    """Makes a node rest until the test tells it to look. `pauses` has the seconds for which the node would
    otherwise have rested.
    """

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float] = []
        self._look = Semaphore(0)
        self._rests = Semaphore(0)

    def wait(self, seconds: float) -> bool:
        """Rest until the next look; returns whether the node must stop."""
        self.pauses.append(seconds)
        self._rests.release()
        self._look.acquire()
        return self.asked

    def ask(self) -> None:
        """Ask the node to stop, and wake it."""
        super().ask()
        self._look.release()

    def await_rest(self) -> None:
        """Wait until the node rests after a look."""
        assert self._rests.acquire(timeout=60), "it has ended, or waits for something"

    def look(self) -> None:
        """Let the node look once."""
        self._look.release()
        self.await_rest()


Make = Callable[[Client, Home, Stop], Node]


def solver(client: Client, home: Home, stop: Stop) -> Node:
    settings = SolverSettings.model_validate({"port": 0, "stake": 100, "relays": RELAYS, "low_disk_gib": 0})
    return SolverNode(client, settings, home, stop=stop)


def only_watch(client: Client, home: Home, stop: Stop) -> Node:
    settings = VerifierSettings.model_validate({"port": 0, "relays": RELAYS, "low_disk_gib": 0})
    reading = Client(client.connection, client.deployment, None)
    return OnlyWatch(reading, settings, home, stop)


def verifier(accounts: int) -> Make:
    def make(client: Client, home: Home, stop: Stop) -> Node:
        settings = VerifierSettings.model_validate(
            {"port": 0, "stake": 10, "relays": RELAYS, "low_disk_gib": 0}
        )
        further = [client.for_account(f"dev:{20 + number}", sending=SENDING) for number in range(1, accounts)]
        for one in further:
            one.token.mint(one.address, 1_000 * TOKEN)
        return VerifierNode(client, settings, home, further=further, stop=stop)

    return make


@contextmanager
def running(node: Node, stop: Paced) -> Iterator[None]:
    """Run the node's loop in a thread; the context starts when the node rests for the first time."""
    thread = Thread(target=node.run, args=(False,))  # type: ignore[attr-defined]
    thread.start()
    try:
        stop.await_rest()
        yield
    finally:
        stop.ask()
        thread.join(60)
    assert not thread.is_alive()


@pytest.fixture
def market(chain: Devnet, deployed: Deployment) -> Iterator[History]:
    """A chain on which tasks can be posted and ended."""
    with ExitStack() as stack:
        submitter, rival = (
            stack.enter_context(connect(chain.url, deployed, f"dev:{index}", sending=SENDING))
            for index in (5, 6)
        )
        yield History(chain, submitter, rival, signature)


@pytest.mark.parametrize("past", [0, 100])
@pytest.mark.parametrize(
    "make",
    [solver, verifier(1), verifier(10), only_watch],
    ids=["solver", "verifier", "ten accounts", "only watch"],
)
def test_an_idle_node_asks_twice_for_each_block(
    chain: Devnet, market: History, tmp_path: Path, make: Make, past: int
) -> None:
    market.make(past)
    stop = Paced()
    with RpcProxy(chain.url) as proxy, ExitStack() as stack:
        client = stack.enter_context(connect(proxy.url, market.deployment, "dev:20", sending=SENDING))
        client.token.mint(client.address, 1_000 * TOKEN)
        node = make(client, Home(tmp_path / "home"), stop)
        with running(node, stop):
            become_idle(chain, node, stop)
            assert stop.pauses[-1] == client.connection.block_time > PACE
            for _ in range(BLOCKS):
                assert asked(proxy, stop.look) == {HEAD: 1}, "no block is new"
                chain.mine()
                assert asked(proxy, stop.look) == {HEAD: 1, CALL: 1}
            assert asked(proxy, lambda: scrape(node)) == {}


def waiting(proxy: RpcProxy) -> int:
    """Number of calls for receipts, nonces and blocks. A node that waits for transactions repeats such calls,
    so their number grows with time.
    """
    return proxy.asked[RECEIPT] + proxy.asked[NONCE] + proxy.asked[HEAD]


@pytest.mark.parametrize("make", [solver, verifier(1)], ids=["solver", "verifier"])
def test_a_start_asks_of_many_past_tasks_together(
    chain: Devnet, market: History, tmp_path: Path, make: Make
) -> None:
    """One HTTP request holds up to a hundred questions, so there are far fewer requests than tasks."""
    tasks = market.make(250)
    stop = Paced()
    with RpcProxy(chain.url) as proxy, ExitStack() as stack:
        client = stack.enter_context(connect(proxy.url, market.deployment, "dev:20", sending=SENDING))
        client.token.mint(client.address, 1_000 * TOKEN)
        node = make(client, Home(tmp_path / "home"), stop)
        before = proxy.requests - waiting(proxy)
        with running(node, stop):
            become_idle(chain, node, stop)
        assert proxy.requests - waiting(proxy) - before < 65
        assert waiting(proxy) < len(tasks), "nor does waiting ask for each of them"
        if isinstance(node, VerifierNode):
            with closing(open_database(VerifierDatabase, Home(tmp_path / "home"), client)) as database:
                assert all(map(database.is_finished, tasks))


def test_a_follower_asks_twice_for_each_block(chain: Devnet, market: History) -> None:
    with RpcProxy(chain.url) as proxy, connect(proxy.url, market.deployment) as client:
        follower = Follower(client.connection, client.contracts, market.deployment.block)
        follower.poll()
        for _ in range(BLOCKS):
            assert asked(proxy, follower.poll) == {HEAD: 1}, "no block is new"
            chain.mine()
            assert asked(proxy, follower.poll) == {HEAD: 1, "eth_getLogs": 1}


def become_idle(chain: Devnet, node: Node, stop: Paced) -> None:
    """Let the node look until it has nothing to do and no re-organisation can reach its transactions."""
    for _ in range(LOOKS):
        if node._is_idle():
            break
        stop.look()
    assert node._is_idle()
    for _ in range(2):  # the second time nothing is sent in between
        chain.mine(chain.connection.chain.reorg_depth)
        stop.look()
    stop.look()


def scrape(node: Node) -> None:
    """Send the requests of Prometheus and of a supervisor."""
    for path in ("/metrics", "/readyz", "/healthz"):
        answer = httpx.get(node.monitoring_url + path, timeout=60)
        assert answer.status_code == 200, answer.text


def asked(proxy: RpcProxy, look: Callable[[], object]) -> Counter[str]:
    """Call `look`; returns the number of calls that the proxy received meanwhile, by method."""
    before = proxy.asked.copy()
    look()
    return proxy.asked - before
