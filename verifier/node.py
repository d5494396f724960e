"""The running verifier: one loop that plays its games first, then attests, moves tasks on, and replays.

Nothing here decides a move or a number: that is `Conduct`, `duties` and the program. The loop never waits for a
receipt or a replay; `Jobs` does, so that games and duties go on side by side.
"""

from __future__ import annotations

import threading
import time
from functools import partial

from protocol.chain.client import Client
from protocol.chain.errors import NotMined, RpcError, UnstableChain
from protocol.chain.parameters import TOKEN
from protocol.chain.views import TaskView
from protocol.failures import known
from protocol.runtime.exits import ExitCode
from protocol.runtime.home import Home
from protocol.runtime.stopping import Stop
from verifier import auditing, chores
from verifier.challenging import Challenge
from verifier.conduct import HONEST, Conduct
from verifier.desk import Desk
from verifier.duties import Sight, chore
from verifier.funds import withdraw_above
from verifier.jobs import Jobs
from verifier.registration import ensure_registered
from verifier.settings import VerifierSettings

SENDERS = 4
"""Short jobs side by side besides the games: chores and attestations, each a transaction."""
WON = ("solver_false", "solver_silent")
LOST = "challenger_silent"


class VerifierNode:
    """A verifier on one chain from one account. `run` returns the process's exit code."""

    def __init__(
        self,
        client: Client,
        settings: VerifierSettings,
        home: Home,
        conduct: Conduct = HONEST,
        *,
        stop: Stop | None = None,
    ) -> None:
        self.desk = Desk.at(home, client, settings, conduct)
        self._stop = stop or Stop()
        # A move waits for nothing but its own clock: it is tried again within seconds. A replay may rest longer.
        self._games = Jobs(settings.games, longest_rest=4)
        self._sends = Jobs(SENDERS, longest_rest=8)
        self._replays = Jobs(settings.replays, longest_rest=30)
        self._challenges: dict[int, Challenge] = {}
        self._challenges_lock = threading.Lock()  # games' threads add, the loop removes and looks
        self._withdraw = True
        self._finished = 0
        self._outcomes: set[str | None] = set()

    def run(self, once: bool = False) -> ExitCode:
        """Until stopped; with `once` until every task is over that was seen (at least one).

        FRAUD if with `once` a solver was found false or an own challenge was lost. Raises VerifierError, ChainError.
        """
        try:
            return self._loop(once)
        finally:
            for jobs in (self._games, self._sends, self._replays):
                jobs.close()
            self.desk.database.close()

    def _loop(self, once: bool) -> ExitCode:
        desk, seen, prepared = self.desk, time.monotonic(), False
        while True:
            try:
                if not prepared:
                    ensure_registered(desk.client, desk.settings.stake_slots)
                    desk.log.info("ready", account=desk.client.address)
                    prepared = True
                alive = self.turn()
                seen = time.monotonic()
            except (RpcError, NotMined, UnstableChain) as error:
                if time.monotonic() - seen > desk.settings.patience:
                    raise
                desk.log.warning("waiting for the chain", error=str(error))
                alive = 1
            if self._stop.asked and not self._moves_due():
                desk.log.warning("stopped", open_accusations=len(desk.database.open_accusations()))
                return ExitCode.INTERRUPTED
            if once and not alive and self._seen_enough():
                return self._verdict()
            if self._stop.wait(desk.settings.poll):
                time.sleep(desk.settings.poll)  # asked to stop, and a move is due: no busy waiting

    def turn(self) -> int:
        """One look at everything; how many tasks and accusations are not over. Raises ChainError."""
        self._collect()
        desk = self.desk
        block = desk.client.connection.block()
        alive = self._play()
        sights = []
        for view in self._open_tasks():
            if view.status.is_over:
                self._over(view)
            elif not self._stop.asked:
                alive += 1
                sights.append(chores.see(desk, view, block.time, block.number))
                self._tend(sights[-1])
        for key, job in auditing.replays(desk, sights):
            if self._replays.full:
                break
            self._replays.offer(key, job)
        self._take_earnings()
        return alive + self._games.busy + self._sends.busy

    def _seen_enough(self) -> bool:
        """Whether the chosen tasks, or at least one task, are over."""
        chosen = set(self.desk.settings.tasks)
        return chosen <= self.desk.database.finished() if chosen else self._finished > 0

    def _open_tasks(self) -> list[TaskView]:
        """Tasks that are not over, or not yet known to be."""
        market, finished = self.desk.client.market, self.desk.database.finished()
        chosen = self.desk.settings.tasks
        newest = market.tasks()
        numbers = [n for n in (chosen or range(1, newest + 1)) if n <= newest and n not in finished]
        return [market.task(number) for number in numbers]

    def _tend(self, sight: Sight) -> None:
        """Offer the transactions that a task asks for."""
        for key, job in auditing.attestations(self.desk, sight):
            self._sends.offer(key, job)
        what = chore(sight)
        if what is not None:
            self._sends.offer(f"{what} {sight.view.task}", partial(chores.do, self.desk, sight.view, what))

    def _over(self, view: TaskView) -> None:
        """Forget a task once its accusation, if any, is over too."""
        task = view.task
        accusation = self.desk.database.accusation(task)
        if accusation is not None:
            at_stake = accusation.reclaimable is not None and accusation.outcome is None
            if at_stake or f"game {task}" in self._games:
                return
            if accusation.outcome is None:  # somebody else was first, and nothing of ours is at stake
                self.desk.database.update_accusation(task, outcome="needless")
            self._outcomes.add(accusation.outcome)
        self.desk.database.finish(task)
        self.desk.materials.drop(task)
        self._withdraw = True
        self._finished += 1
        self.desk.log.info("over", task=task, status=view.status.name.lower())

    def _play(self) -> int:
        """Offer the next move of every accusation, those beyond `games` wait; how many are open."""
        tasks = [accusation.task for accusation in self.desk.database.open_accusations()]
        with self._challenges_lock:
            self._challenges = {task: game for task, game in self._challenges.items() if task in tasks}
            held = set(self._challenges)
        for task in tasks:
            if task in held or len(held) < self.desk.settings.games:
                self._games.offer(f"game {task}", partial(self._advance, task))
        return len(tasks)

    def _advance(self, task: int) -> None:
        """The next thing in one accusation."""
        desk = self.desk
        with self._challenges_lock:
            challenge = self._challenges.get(task)
        if challenge is None:
            material = desk.material(desk.client.market.task(task))
            challenger = desk.conduct.challenger
            challenge = Challenge(desk.client, desk.database, material, task, challenger, desk.settings.speed)
            with self._challenges_lock:
                self._challenges[task] = challenge
        challenge.advance()

    def _moves_due(self) -> bool:
        """Whether one's own clock runs in a game."""
        with self._challenges_lock:
            return bool(self._games.busy) or any(game.own_turn for game in self._challenges.values())

    def _take_earnings(self) -> None:
        """After a task: take what is free out of the vault, but for one bond."""
        if self._withdraw and not self._challenges and not self._stop.asked:
            self._withdraw = not self._sends.offer("withdraw", self._withdraw_now)

    def _withdraw_now(self) -> None:
        client = self.desk.client
        amount = withdraw_above(client, client.deployment.parameters.challenge_bond)
        if amount:
            self.desk.log.info("withdrawn", tokens=amount / TOKEN)

    def _collect(self) -> None:
        """Say what went wrong. A job is offered again later; only the chain's absence ends the loop."""
        for jobs in (self._games, self._sends, self._replays):
            for key, error in jobs.collect():
                defect = error if known(error) is None else None
                self.desk.log.warning("failed", job=key, error=str(error), exc_info=defect)

    def _verdict(self) -> ExitCode:
        return ExitCode.FRAUD if self._outcomes & {*WON, LOST} else ExitCode.FINE
