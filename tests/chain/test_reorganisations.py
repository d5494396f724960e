"""Re-organisations one to eight blocks deep with a running solver and verifier, at each stage of a task.

A transaction that a party has just sent is taken back together with the blocks on top of it: the node forgets
it or mines it again a block later. On a development chain nothing waits for finality, and journals look back
eight blocks (`protocol/chain/chains.toml`). No party is restarted, the task ends as it would have without the
re-organisation, and no token is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

import pytest

from protocol.chain.client import Client
from protocol.chain.events import Follower
from protocol.chain.receipts import Event
from protocol.chain.views import NOBODY, TaskStatus
from protocol.dispute.view import Verdict
from protocol.errors import ExitCode
from solver.errors import StakeSlashed
from solver.strategy import HONEST, Strategy
from tests.adversaries.tiny import moves_a_weight_far
from tests.chain.rpc_proxy import PRESETS, RpcProxy
from tests.chain.solver_stage import Solver, Stage, stage
from tests.chain.test_verifier_watch import Watcher

pytestmark = [pytest.mark.chain, pytest.mark.heavy]

PATIENCE = 120.0
STAGES = {
    "bid": "BidPlaced",
    "submission": "Submitted",
    "attestation": "Attested",
    "challenge": "Challenged",
    "answer": "StepsPosted",
    "move": "StepSelected",
}
"""The event of each stage. The solver causes `bid`, `submission` and `answer`, the verifier the others."""
IN_A_GAME = ("challenge", "answer", "move")


@dataclass
class Play:
    """A task with its parties, on a chain whose blocks only the test mines."""

    scene: Stage
    proxy: RpcProxy
    solver: Solver
    watcher: Watcher
    task: int

    @property
    def clients(self) -> list[Client]:
        return [self.scene.submitter, self.solver.client, self.watcher.client]

    def until(self, what: Callable[[], bool]) -> None:
        """Mine blocks, and skip periods in which nothing happens, until `what` holds."""
        deadline = monotonic() + PATIENCE
        while not what():
            assert monotonic() < deadline, self.scene.submitter.market.task(self.task)
            for party in (self.solver, self.watcher):
                assert party.ended is None or isinstance(party.ended, ExitCode | StakeSlashed), party.ended
            sleep(0.1)
            self.scene.devnet.skip(self._idle())

    def _idle(self) -> int:
        """Seconds to skip until bidding ends, a draw's round is published or the challenge period ends; 1 if
        the task waits for something else.
        """
        market, audit = self.scene.submitter.market, self.scene.submitter.audit
        view, now = market.task(self.task), self.scene.submitter.now()
        ends = 0
        if view.status is TaskStatus.BIDDING and view.bidder != NOBODY:
            ends = view.bids_until
        elif view.status is TaskStatus.SUBMITTED and view.open_games == 0:
            if audit.audit(self.task).pending:
                ends = self.scene.deployment.beacon.time_of(audit.audit(self.task).round)
            elif all(seat.attested for seat in audit.seats(self.task)):
                ends = view.challenge_until
        return max(1, ends - now + 1)

    def tokens(self) -> int:
        """All tokens: free, in wallets, locked and burned."""
        vault = self.scene.submitter.vault
        locked = sum(vault.lock_of(lock).remaining for lock in range(1, vault.locks() + 1))
        return sum(sum(client.tokens()) for client in self.clients) + locked + vault.burned()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Stage]:
    with stage(tmp_path, mixed=False) as made:
        made.devnet.connection.request("evm_setIntervalMining", 0)
        made.devnet.connection.request("evm_setAutomine", True)
        yield made


def started(scene: Stage, parties: ExitStack, strategy: Strategy, cheated: bool) -> Play:
    """Start the nodes and post a task; the verifier under test is the only one in the draw."""
    scene.submitter.audit.resign()
    proxy = parties.enter_context(RpcProxy(scene.devnet.url))
    watcher = Watcher(scene, whistleblow=cheated)
    parties.callback(watcher.close)
    deadline = monotonic() + PATIENCE
    while not scene.submitter.audit.registered():
        assert monotonic() < deadline
        sleep(0.05)
    solver = Solver(scene, strategy)
    parties.callback(solver.close)
    task = scene.post()
    scene.devnet.connection.request("evm_setAutomine", False)
    return Play(scene, proxy, solver, watcher, task)


@pytest.mark.parametrize(("depth", "again"), [(1, False), (3, False), (8, False), (3, True), (8, True)])
@pytest.mark.parametrize("at", STAGES)
def test_a_task_ends_as_ever_after_a_re_organisation(scene: Stage, at: str, depth: int, again: bool) -> None:
    client, cheated = scene.submitter, at in IN_A_GAME
    follower = Follower(client.connection, client.contracts, scene.deployment.block)
    seen: list[int] = []
    """The blocks in which the event of this stage was seen."""

    def note(events: Sequence[Event]) -> None:
        seen.extend(event.log.block for event in events if event.name == STAGES[at])

    def reached() -> bool:
        note(follower.poll().events)
        return bool(seen)

    with ExitStack() as parties:
        strategy = Strategy(executor=moves_a_weight_far) if cheated else HONEST
        play = started(scene, parties, strategy, cheated)
        tokens = play.tokens()
        play.until(reached)
        assert client.connection.block().number == seen[0]
        if depth > 1:
            scene.devnet.mine(depth - 1)
        before = client.connection.block()
        with PRESETS[f"reorg-{depth}-{'again' if again else 'dropped'}"](play.proxy):
            assert client.connection.block(before.number).hash != before.hash
        batch = follower.poll()
        assert batch.rewound == seen[0] - 1
        seen.clear()
        note(batch.events)
        assert bool(seen) == (again and depth > 1)
        play.until(reached)
        play.until(lambda: client.market.task(play.task).status.is_over)
        play.until(lambda: play.solver.ended is not None and play.watcher.ended is not None)
        view = client.market.task(play.task)
        if cheated:
            assert view.status is TaskStatus.SLASHED
            assert client.game.games() == 1
            game = client.game.game(1)
            assert (game.verdict, game.segment, game.step) == (Verdict.SOLVER_FALSE, 2, 2)
            assert game.challenger == play.watcher.client.address
            assert isinstance(play.solver.ended, StakeSlashed)
            assert play.watcher.ended is ExitCode.FRAUD
            scene.devnet.skip(max(0, client.commitments.claims_until(play.task) - client.now()) + 1)
            scene.devnet.connection.request("evm_setAutomine", True)
            client.market.burn_rest(play.task)
        else:
            assert view.status is TaskStatus.SETTLED
            assert play.solver.ended is play.watcher.ended is ExitCode.FINE
        assert play.tokens() == tokens
        assert client.vault.lock_of(view.stake).remaining == 0
        assert client.vault.lock_of(view.escrow).remaining == 0


@pytest.mark.parametrize("again", [False, True])
def test_a_cheat_is_convicted_though_all_that_led_to_the_game_was_taken_back(
    scene: Stage, again: bool
) -> None:
    """If the node forgets the submission, the commitment and the challenge, they are sent again. They may
    then be mined in one block, in which some of them revert.
    """
    client = scene.submitter
    follower = Follower(client.connection, client.contracts, scene.deployment.block)

    def challenged() -> bool:
        return any(event.name == "Challenged" for event in follower.poll().events)

    with ExitStack() as parties:
        play = started(scene, parties, Strategy(executor=moves_a_weight_far), cheated=True)
        tokens = play.tokens()
        play.until(challenged)
        with PRESETS[f"reorg-8-{'again' if again else 'dropped'}"](play.proxy):
            assert client.game.games() == 0 or again
        play.until(lambda: client.market.task(play.task).status.is_over)
        play.until(lambda: play.solver.ended is not None and play.watcher.ended is not None)
        assert client.market.task(play.task).status is TaskStatus.SLASHED
        assert isinstance(play.solver.ended, StakeSlashed)
        assert play.watcher.ended is ExitCode.FRAUD
        scene.devnet.skip(max(0, client.commitments.claims_until(play.task) - client.now()) + 1)
        scene.devnet.connection.request("evm_setAutomine", True)
        client.market.burn_rest(play.task)
        assert play.tokens() == tokens
