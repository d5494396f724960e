"""Which challenge, game or fetch comes first if tokens, memory or threads are short, on a real chain."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from protocol.chain.client import Client
from protocol.chain.events import Follower
from protocol.chain.parameters import TOKEN
from protocol.dispute.keys import NO_SEAT
from protocol.node.stopping import Stop
from tests.attacks.blinding import Scene, trickling
from tests.attacks.blinding import scene as staged
from tests.chain.test_verifier_watch import wait
from verifier.database import Challenge
from verifier.games import Games
from verifier.node import VerifierNode
from verifier.settings import VerifierSettings

pytestmark = pytest.mark.chain

BOND = 20 * TOKEN


class Watcher:
    """A verifier node with `further` additional accounts, in a thread if `started`."""

    def __init__(self, scene: Scene, started: bool = True, further: int = 0, **settings: object) -> None:
        self.client: Client = scene.client("dev:2")
        self._further = [scene.client(f"dev:{index}") for index in range(20, 20 + further)]
        self._stop = Stop()
        chosen = {
            "poll": 0.05,
            "port": 0,
            "stake": 10,
            "relays": (scene.relay,),
            "bundles": (scene.bundles.parent.as_uri(),),
            **settings,
        }
        self.node = VerifierNode(
            self.client,
            VerifierSettings.model_validate(chosen),
            scene.home,
            further=self._further,
            stop=self._stop,
        )
        self._thread = Thread(target=self.node.run)
        if started:
            self._thread.start()

    def close(self) -> None:
        """Stop the node and release its accounts."""
        self._stop.ask()
        if self._thread.ident is not None:
            self._thread.join(60)
        for client in (self.client, *self._further):
            client.close()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with staged(tmp_path) as made:
        yield made


def challenging(watcher: Watcher, tasks: list[int]) -> Games:
    """Record a difference for each of `tasks` in the node's database; returns the node's games."""
    for task in tasks:
        watcher.node.context.database.put_challenge(
            Challenge(task, NO_SEAT, watcher.client.address, None, bytes([task]) * 32, b"")
        )
    return watcher.node._games


def test_the_tokens_for_bonds_go_to_the_largest_stakes(scene: Scene) -> None:
    stakes = [500, 800, 600, 900, 700]
    tasks = [scene.post(segments=1, stake=stake * TOKEN) for stake in stakes]
    scene.cheated(tasks, drawn=False)
    watcher = Watcher(scene, started=False)
    client = watcher.client
    tokens = client.token.balance_of(client.address)
    client.token.write("transfer", scene.submitter.address, tokens - 2 * BOND - 1)
    games = challenging(watcher, tasks)

    def played() -> bool:
        games.play()
        errors = [type(failure.error).__name__ for failure in games.collect()]
        return len(scene.games_on()) == 2 and "NotEnoughTokens" in errors

    try:
        wait(played)
        assert sorted(scene.games_on()) == [tasks[1], tasks[3]]
        assert client.vault.free(client.address) + client.token.balance_of(client.address) == 1
    finally:
        games.close()
        watcher.close()


def test_the_earliest_deadline_gets_the_memory(scene: Scene) -> None:
    tasks = [scene.post(segments=1, clock=clock) for clock in (1_500, 900, 1_200)]
    scene.cheated(tasks, drawn=False)
    watcher = Watcher(scene, started=False, games=1)
    games = challenging(watcher, tasks)
    games.begin()
    game = scene.submitter.game
    told = Follower(game.connection, {game.address: game.contract}, scene.deployment.block)
    moved: list[int] = []
    opens = False

    def played() -> bool:
        # Open trees only once a move is due in every game, and no job is in progress: a game whose job has
        # not ended is left out. From then on, offer no jobs.
        nonlocal opens
        due = all(game.needs_trees for game in games._drivers.values())
        opens = opens or (due and not games._turns.busy)
        if opens:
            games._open_trees()
        elif not due:
            for task in tasks:
                games._offer_turn((task, NO_SEAT))
        for failure in games.collect():
            raise failure.error
        demands = [event for event in told.poll().events if event.name == "Demanded"]
        moved.extend(game.game(int(event.arguments["game"])).task for event in demands)
        assert sum(game.holds_trees for game in games._drivers.values()) <= 1
        return len(moved) == len(tasks)

    try:
        wait(played)
        assert moved == [tasks[1], tasks[2], tasks[0]]
    finally:
        games.close()
        watcher.close()


def test_a_bundle_that_trickled_comes_after_the_others(scene: Scene) -> None:
    """Two tasks are baits: their bundle arrives at one byte a second. Even with one thread for replays and
    one for fetches, each bait delays the real task's bundle by less than five seconds.
    """
    with trickling() as address:
        watcher = Watcher(scene, further=7, replays=1, fetches=1)
        try:
            wait(lambda: scene.submitter.audit.registered() > 8)
            scene.submitter.audit.resign()  # so that nobody else is in the draw
            scene.cheat.market.announce(address)
            baits = [
                scene.post(bundle=address, bundle_hash=k.to_bytes(32), attest_period=2, challenge_period=k)
                for k in (300, 301)
            ]
            task = scene.post()
            scene.cheated([*baits, task])
            context = watcher.node.context
            terms, lost = scene.submitter.market.terms(task), watcher.node._workers.fetches.rests.lost
            # The time that a fetch took is counted in the node's next turn.
            wait(lambda: context.materials.has_bundle(terms) and all(map(lost, baits)))
            assert all(lost(bait) < 5 for bait in baits)
            wait(lambda: task in scene.games_on())
        finally:
            watcher.close()
