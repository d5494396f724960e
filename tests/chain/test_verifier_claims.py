"""What a verifier's seats get on the real contracts if somebody else convicts: bond, cost and fee.

The solver's roots are made up, with no states behind them, so every segment is false. The solver never
answers. When its clock has run out, the bystander convicts it; in one test, the seat does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from protocol.chain.client import Client
from protocol.chain.devnet import Devnet
from protocol.chain.parameters import TOKEN
from protocol.chain.views import TaskStatus
from protocol.commitments import Tree, segment_tree
from protocol.dispute.keys import NO_SEAT, priority_commitment
from protocol.dispute.openings import open_leaf
from protocol.dispute.view import Verdict
from protocol.node.home import Home
from tests.chain.conftest import Connect
from tests.chain.rounds import ANYTHING, draw_first
from tests.chain.test_verifier_watch import wait
from tests.chain.trees import ROOTS, SEGMENTS, fund, submitted, terms
from verifier.database import Challenge
from verifier.node import VerifierNode
from verifier.settings import VerifierSettings

pytestmark = pytest.mark.chain

TERMS = terms()
WHOLE = TERMS.game_cost + TERMS.seat_fee
"""The amount that a seat gets, in addition to its bond, if it committed a challenge."""


class Scene:
    """A task whose only seat is the node's. Nothing is replayed; tests put challenges in the database."""

    def __init__(self, chain: Devnet, connected: Connect, folder: Path) -> None:
        self.chain = chain
        submitter, self.solver, self.client, self.bystander = map(connected, (1, 2, 3, 4))
        for party in (submitter, self.solver, self.client, self.bystander):
            fund(party, 2000)
        self.client.audit.register(0, ANYTHING)
        self.task = submitted(chain, submitter, self.solver, 90 * TOKEN, challenge_period=2_000)
        draw_first(self.solver, chain)
        self.segments = self.client.audit.segments(self.task, 0)
        self.others = [n for n in range(1, SEGMENTS + 1) if n not in self.segments]
        settings = VerifierSettings.model_validate({"port": 0, "replays": 1, "fetches": 1})
        self.node = VerifierNode(self.client, settings, Home(folder / "home"))
        self.database = self.node.context.database
        self.before = self.wealth

    @property
    def wealth(self) -> int:
        """Token units of the seat's account, without its stake and bonds."""
        return self.client.vault.free(self.client.address) + self.client.token.balance_of(self.client.address)

    @property
    def row(self) -> Challenge:
        """The seat's challenge, as the node's database has it."""
        (found,) = self.database.challenges(self.task)
        return found

    def challenge(self, segment: int) -> None:
        """Record in the node's database that the seat found a segment false, and wait until the node has
        committed the challenge.
        """
        self.database.put_challenge(
            Challenge(self.task, 0, self.client.address, segment, bytes(32), b"".join(ROOTS))
        )
        self.node._tick()
        wait(lambda: self.row.is_committed)
        self.node._workers.sends.wait()  # a parallel thread brings the bond into the vault

    def until(self, what: Callable[[], bool]) -> None:
        """Mine a block and let the node act on the chain's state, again and again until `what` returns true."""

        def looked() -> bool:
            self.chain.mine()
            self.node._tick()
            return what()

        wait(looked)

    def challenged(self, segment: int) -> int:
        """Open a game of the bystander and let the solver's clock run out; returns the game's number."""
        game = challenge(self.bystander, self.chain, self.task, segment)
        self.chain.skip(TERMS.clock + 1)
        return game

    def convict(self, game: int) -> None:
        """Let the bystander end the game because the solver's clock has run out."""
        self.bystander.game.time_out(game)
        assert self.solver.market.task(self.task).status is TaskStatus.SLASHED

    def until_claimed(self) -> None:
        """Wait until the node has claimed what it is owed and has finished the task."""
        self.until(lambda: self.database.is_finished(self.task))
        assert self.database.is_claimed(self.task, 0)
        self.node._workers.sends.wait()  # until its tokens are withdrawn from the vault

    def close(self) -> None:
        """End the node's threads."""
        self.node._close()


def commit(client: Client, task: int, segment: int, salt: bytes) -> int:
    """Commit to a challenge as a party that has no seat; returns the bond that was locked."""
    calls, chain = client.commitments, client.deployment.chain_id
    receipt = calls.commit(
        task, NO_SEAT, priority_commitment(chain, calls.address, task, segment, client.address, salt)
    )
    return int(calls.event(receipt, "Committed").arguments["bond"])


def challenge(client: Client, chain: Devnet, task: int, segment: int) -> int:
    """Open a game as a party that has no seat; returns the game's number."""
    commit(client, task, segment, bytes(32))
    chain.mine()
    tree: Tree = segment_tree(ROOTS)
    before, after = (open_leaf(tree, k, ROOTS[k]) for k in (segment - 1, segment))
    return client.game.challenge(task, segment, bytes(32), before, after)[0]


@pytest.fixture
def scene(chain: Devnet, connected: Connect, tmp_path: Path) -> Iterator[Scene]:
    made = Scene(chain, connected, tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize("own", [True, False])
def test_a_seat_whose_commitment_is_opened_late_is_whole(scene: Scene, own: bool) -> None:
    """The seat commits a challenge, but the bystander, here the solver's accomplice, convicts the solver
    before the seat opens its challenge. The seat still gets its bond back, the cost of a game and its fee. If
    `own`, the convicted segment is one of the seat's segments; otherwise it is not.
    """
    accomplices = scene.challenged(scene.segments[0] if own else scene.others[0])
    scene.challenge(scene.segments[1])
    assert scene.wealth == scene.before - TERMS.bond
    scene.convict(accomplices)
    scene.until_claimed()
    assert (scene.row.outcome, scene.row.game) == ("opened_late", None)
    assert scene.wealth == scene.before + WHOLE


def test_a_seat_whose_game_is_moot_is_whole(scene: Scene) -> None:
    accomplices = scene.challenged(scene.segments[0])
    scene.challenge(scene.segments[0])
    scene.until(lambda: scene.row.game is not None)
    scene.convict(accomplices)
    scene.until_claimed()
    assert scene.row.outcome == "moot"
    assert scene.wealth == scene.before + WHOLE


def test_a_seat_that_convicts_has_the_reward_beside(scene: Scene) -> None:
    scene.challenge(scene.segments[0])
    scene.until(lambda: scene.row.game is not None)
    game = scene.row.game
    assert game is not None
    scene.chain.skip(TERMS.clock + 1)
    scene.until_claimed()
    assert scene.client.game.game(game).verdict is Verdict.SOLVER_SILENT
    assert scene.wealth == scene.before + TERMS.reward + WHOLE


@pytest.mark.parametrize(("own", "paid"), [(False, TERMS.seat_fee), (True, 0)])
def test_an_attested_seat_has_its_fee_unless_the_convicted_segment_is_its_own(
    scene: Scene, own: bool, paid: int
) -> None:
    scene.client.audit.attest(scene.task, 0, bytes(32), bytes(32))
    scene.convict(scene.challenged((scene.segments if own else scene.others)[0]))
    scene.until_claimed()
    assert scene.wealth == scene.before + paid


def test_what_somebody_else_has_claimed_is_not_claimed_twice(scene: Scene) -> None:
    scene.client.audit.attest(scene.task, 0, bytes(32), bytes(32))
    scene.convict(scene.challenged(scene.others[0]))
    scene.solver.commitments.pay_fee(scene.task, 0)
    scene.until_claimed()
    assert scene.wealth == scene.before + TERMS.seat_fee


def test_the_seventeenth_bond_of_a_task_doubles_but_for_its_seats(scene: Scene) -> None:
    held = [commit(scene.bystander, scene.task, 1, k.to_bytes(32)) for k in range(18)]
    assert held == [TERMS.bond] * 16 + [2 * TERMS.bond, 4 * TERMS.bond]
    scene.challenge(scene.segments[0])
    assert scene.wealth == scene.before - TERMS.bond
