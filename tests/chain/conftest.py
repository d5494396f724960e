"""Fixtures with chains. With `chain`, the tests of a file share one anvil: everything is deployed once, and
each test starts from the same state. With `arena`, they share one chain whose state stays from test to test.
With `scene`, each test has a separate chain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from protocol.chain.accounts import development_account
from protocol.chain.client import Client, connect
from protocol.chain.deploy import deploy
from protocol.chain.deployment import Deployment
from protocol.chain.devnet import Devnet
from protocol.chain.transactions import Sender, Sending
from sim.replay.amounts import deployment_parameters
from sim.replay.comparison import Comparison
from sim.replay.play import replay_on
from sim.replay.scenario import Scenario
from sim.replay.scenarios import SCENARIOS
from sim.replay.stage import deployed as deployed_for
from sim.replay.stage import own_home
from tests.chain.arena import Arena, fresh_arena
from tests.chain.rounds import show
from tests.chain.solver_stage import Stage, stage

QUICK = Sending(timeout=30.0, poll=0.01)
"""Short polls: anvil mines a block for each transaction, so a receipt is available at once."""

Connect = Callable[[int], Client]
Replayed = Callable[[Scenario, Callable[[str], None]], Comparison]


@pytest.fixture(scope="module")
def devnet() -> Iterator[Devnet]:
    """One anvil per test file, because an anvil keeps the states of only 500 blocks, and reverted blocks
    count too.
    """
    with Devnet(block_time=None) as running:
        yield running


@pytest.fixture(scope="module")
def deployed(devnet: Devnet, tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASSAY_HOME", str(tmp_path_factory.mktemp("deployer")))
        account = development_account(0, devnet.chain_id)
        with Sender(devnet.connection, account, QUICK) as sender:
            deployment = deploy(sender)
        with connect(devnet.url, deployment, account, sending=QUICK) as client:
            show(client)
        return deployment


@pytest.fixture
def chain(devnet: Devnet, deployed: Deployment) -> Iterator[Devnet]:
    """The file's chain with the contracts deployed. After each test, the chain is reverted to its state
    before that test.
    """
    assert deployed.chain_id == devnet.chain_id
    snapshot = devnet.connection.request("evm_snapshot")
    yield devnet
    assert devnet.connection.request("evm_revert", snapshot)


@pytest.fixture(scope="module")
def young() -> Iterator[Devnet]:
    """Another chain with few blocks, for tests that read the state of every block."""
    with Devnet(block_time=None) as running:
        yield running


@pytest.fixture
def connected(chain: Devnet, deployed: Deployment) -> Iterator[Connect]:
    """`connected(i)` opens a client for development account i. All these clients are closed after the test."""
    with ExitStack() as stack:
        yield lambda index: stack.enter_context(connect(chain.url, deployed, f"dev:{index}", sending=QUICK))


@pytest.fixture(scope="module")
def arena() -> Iterator[Arena]:
    """One anvil per test file, for games between a solver and a challenger in this process."""
    with own_home(), fresh_arena() as made:
        yield made


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Stage]:
    """A separate chain for each test, with a submitter that is also the verifier."""
    with stage(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def odd_amounts(devnet: Devnet) -> Deployment:
    """Contracts on which most of the simulation's scenarios are replayed. Their amounts are odd, so that
    rounding shows.
    """
    with own_home():
        return deployed_for(devnet, SCENARIOS["honest"])


@pytest.fixture
def replayed(odd_amounts: Deployment, chain: Devnet) -> Replayed:
    """`replayed(scenario, say)` plays a scenario on the file's chain, which is reverted after the test."""

    def play(story: Scenario, say: Callable[[str], None]) -> Comparison:
        usual = deployment_parameters(story.parameters, exact=story.exact) == odd_amounts.parameters
        return replay_on(chain, story, say, odd_amounts if usual else None)

    return play


@pytest.fixture
def client(connected: Connect) -> Client:
    """A client for development account 1."""
    return connected(1)


@pytest.fixture
def sender(chain: Devnet) -> Iterator[Sender]:
    with Sender(chain.connection, development_account(4, chain.chain_id), QUICK) as opened:
        yield opened
