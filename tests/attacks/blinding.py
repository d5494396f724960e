"""A stage for attacks on a verifier: a cheat submits random roots. Anvil mines a block for each transaction.

The cheat is only an account and makes no move in a game. The test decides what is served at its address.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from socket import create_server
from threading import Event, Thread

from assay.beacon import development_beacon
from protocol.chain.devnet import Devnet
from protocol.chain.parameters import TOKEN
from protocol.chain.views import TaskView
from protocol.commitments import ProgressTree
from protocol.node.party.rounds import execute_first_draw
from tests.chain.rounds import signature
from tests.chain.solver_stage import SOLVER, Stage


class Scene(Stage):
    """A stage with two accounts of the attacker: `cheat` submits random roots; `submitter` posts and
    verifies.
    """

    def __init__(self, devnet: Devnet, folder: Path, relay: str) -> None:
        super().__init__(devnet, folder, relay)
        self.cheat = self.client(SOLVER)
        self.cheat.fund(100_000 * TOKEN)

    def cheated(self, tasks: Sequence[int], drawn: bool = True) -> list[TaskView]:
        """Win tasks and submit random roots for them; returns the tasks' views. If `drawn`, the draws of
        these tasks are executed before it returns.
        """
        for task in tasks:
            self.cheat.market.bid(task, 50 * TOKEN)
        self.devnet.skip(max(self.view(task).bids_until for task in tasks) - self.cheat.now() + 1)
        for task in tasks:
            self._hand_in(task)
        while drawn and any(self.submitter.audit.audit(task).pending for task in tasks):
            self._draw()
        return [self.view(task) for task in tasks]

    def view(self, task: int) -> TaskView:
        """The task's current view."""
        return self.submitter.market.task(task)

    def games_on(self) -> list[int]:
        """The tasks of all games, in the order of the games."""
        game = self.submitter.game
        return [game.game(number).task for number in range(1, game.games() + 1)]

    def close(self) -> None:
        """Release the two accounts."""
        self.cheat.close()
        self.submitter.close()

    def _draw(self) -> None:
        """If a draw is pending, advance the chain's clock to the time of the first one, and execute it unless
        a verifier is faster.
        """
        first = self.submitter.audit.first_draw()
        if first is not None:
            published = self.deployment.beacon.time_of(first.round)
            self.devnet.skip(max(0, published - self.submitter.now()))
            execute_first_draw(self.submitter, signature)

    def _hand_in(self, task: int) -> None:
        terms = self.cheat.market.terms(task)
        self.cheat.market.assign(task)
        roots = [terms.initial_state, *(os.urandom(32) for _ in range(terms.segments))]
        tree = ProgressTree(roots).at(len(roots))
        path = tree.inclusion_path(terms.segments)
        self.cheat.market.submit(task, tree.root, tree.inclusion_path(0), [], roots[-1], path)


@contextmanager
def scene(folder: Path) -> Iterator[Scene]:
    """Yields a scene on a fresh chain, with everything deployed and a beacon running."""
    with Devnet(block_time=None) as devnet, development_beacon(devnet.connection, 0) as beacon:
        made = Scene(devnet, folder, beacon.url)
        try:
            yield made
        finally:
            made.close()


@contextmanager
def trickling() -> Iterator[str]:
    """A server whose answers arrive at one byte a second and never end; yields its URL."""
    ended = Event()
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n"

    def answer(connection: object) -> None:
        with connection as held:  # type: ignore[attr-defined]
            held.recv(65_536)
            held.sendall(head)
            while not ended.wait(1):
                try:
                    held.sendall(b"{")
                except OSError:
                    return

    def serve() -> None:
        while not ended.is_set():
            try:
                connection, _ = server.accept()
            except TimeoutError:
                continue
            Thread(target=answer, args=(connection,), daemon=True).start()

    with create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        serving = Thread(target=serve)
        serving.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            ended.set()
            serving.join()
