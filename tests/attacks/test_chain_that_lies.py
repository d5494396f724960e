"""`solver run` and `verifier watch` on a re-organised chain, or with a node that is behind: they do not stop
and need no restart.

At commits aa59d97 and fd6f56d they hung or stopped. In one case, a re-organisation took back a mined
transaction while the next nonce was pending. Only pending journal entries were sent again, so the verifier
hung until it was restarted, and the accused cheat's task ended void. In another case, with a node whose reads
are sometimes two blocks old, both parties ended with exit code 2. If the node did not know a task yet, a call
about that task reverted. A missing receipt was taken to mean that somebody else had used the nonce, and an
old balance was taken to mean that tokens were missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from threading import Event, Thread

import pytest
from eth_utils.address import to_checksum_address

from protocol.chain.events import Follower
from protocol.chain.views import TaskStatus
from protocol.errors import ExitCode
from tests.attacks.processes import Party, until
from tests.chain.rpc_proxy import RpcProxy
from tests.chain.solver_stage import Stage

pytestmark = pytest.mark.chain


@pytest.fixture
def scene(scene: Stage) -> Stage:
    """The stage, after the submitter has left the draw. So the verifier under test is the only one in the draw."""
    scene.submitter.audit.resign()
    return scene


@contextmanager
def blocks(scene: Stage, enough: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Inside the context, mine five blocks a second. After each block, check `enough`, and stop mining once
    it holds.
    """
    ended = Event()

    def mine() -> None:
        while not ended.wait(0.2):
            scene.devnet.mine()
            if enough():
                return

    scene.devnet.connection.request("evm_setIntervalMining", 0)
    miner = Thread(target=mine)
    miner.start()
    try:
        yield
    finally:
        ended.set()
        miner.join()


@pytest.fixture
def proxy(scene: Stage) -> Iterator[RpcProxy]:
    with RpcProxy(scene.devnet.url) as made:
        scene.url = made.url
        yield made


def test_a_transaction_taken_back_while_the_next_nonce_waits_is_mined_again(scene: Stage) -> None:
    """The verifier's commitment is mined and taken back while its challenge is pending. The game still opens;
    before the fix it never did, because the commitment was not sent again.
    """
    rpc, game = scene.devnet.connection, scene.submitter.game
    calls = scene.submitter.commitments
    committed = Follower(rpc, {calls.address: calls.contract}, scene.deployment.block)
    seen: list[int] = []

    def is_committed() -> bool:
        seen.extend(event.log.block for event in committed.poll().events if event.name == "Committed")
        return bool(seen)

    with ExitStack() as parties:
        with blocks(scene, is_committed):
            verifier = parties.enter_context(Party(scene, "verifier", "--once", "--whistleblow"))

            def waits() -> bool:
                pending = rpc.request("txpool_content")["pending"]
                return verifier.address in {to_checksum_address(sender) for sender in pending}

            solver = parties.enter_context(Party(scene, "solver", "--once", adversary="far-weight"))
            scene.sold()
            until(lambda: bool(seen), verifier, solver)
        until(waits, verifier, solver)
        rpc.request("anvil_reorg", rpc.block().number - seen[0] + 1, [])
        assert game.games() == 0
        with blocks(scene):
            until(lambda: game.games() > 0, verifier, solver)


def test_reads_that_are_two_blocks_old_stop_nobody(scene: Stage, proxy: RpcProxy) -> None:
    """Three of ten reads come from a node two blocks behind, throughout the task. Before the fix, the
    verifier ended with exit code 2, because it believed that somebody else had used a nonce.
    """
    proxy.faults.stale_share = 0.3
    with (
        blocks(scene),
        Party(scene, "verifier", "--once") as verifier,
        Party(scene, "solver", "--once") as solver,
    ):
        task = scene.post()
        until(lambda: scene.submitter.market.task(task).bidder == solver.address, verifier, solver)
        scene.end_bidding(task)
        until(lambda: scene.submitter.audit.audit(task).drawn_at > 0, verifier, solver)
        seats = scene.submitter.audit.seats
        until(lambda: all(seat.attested for seat in seats(task)), verifier, solver)
        scene.end_challenges(task)
        assert verifier.join() == ExitCode.FINE
        assert solver.join() == ExitCode.FINE
    assert scene.submitter.market.task(task).status is TaskStatus.SETTLED
