"""The running verifier: one loop that plays its games first, then attests, moves tasks on, and replays.

Nothing here decides a move or a number: that is `Strategy`, `duties` and the program. The loop never waits for a
receipt or a replay; `Jobs` does, so that games and duties go on side by side.
"""

from __future__ import annotations

import threading
from functools import partial

from protocol.chain.client import Client
from protocol.chain.parameters import TOKEN
from protocol.chain.views import TaskView
from protocol.errors import ExitCode, exit_code_of
from protocol.node.home import Home
from protocol.node.party.funds import withdraw_above
from protocol.node.party.node import Node
from protocol.node.stopping import Stop
from verifier import auditing, keeper
from verifier.challenging import Challenge
from verifier.context import Context
from verifier.duties import Observation, action
from verifier.jobs import Jobs
from verifier.registration import ensure_registered
from verifier.settings import VerifierSettings
from verifier.strategy import HONEST, Strategy

SENDERS = 4
"""Short jobs side by side besides the games: actions and attestations, each a transaction."""
WON = ("solver_false", "solver_silent")
LOST = "challenger_silent"


class VerifierNode(Node):
    """A verifier on one chain from one account. `run` returns the process's exit code."""

    def __init__(
        self,
        client: Client,
        settings: VerifierSettings,
        home: Home,
        strategy: Strategy = HONEST,
        *,
        stop: Stop | None = None,
    ) -> None:
        self.context = Context.at(home, client, settings, strategy)
        super().__init__(settings, self.context.log, stop)
        # A move waits for nothing but its own clock: it is tried again within seconds. A replay may rest longer.
        self._games = Jobs(settings.games, longest_rest=4)
        self._sends = Jobs(SENDERS, longest_rest=8)
        self._replays = Jobs(settings.replays, longest_rest=30)
        self._challenges: dict[int, Challenge] = {}
        self._challenges_lock = threading.Lock()  # games' threads add, the loop removes and looks
        self._withdraw = True
        self._prepared = False
        self._alive = 1
        """Tasks and accusations that are not over, as the last look found."""
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
            self.context.database.close()

    def _tick(self) -> bool:
        self._alive = 1  # until this look says otherwise
        if not self._prepared:
            ensure_registered(self.context.client, self.context.settings.stake_slots)
            self.context.log.info("ready", account=self.context.client.address)
            self._prepared = True
        self._alive = self.turn()
        return False

    def _outcome(self, once: bool) -> ExitCode | None:
        if self._stop.asked:  # then `_alive` no longer counts tasks that are open
            return None
        return self._verdict() if once and not self._alive and self._seen_enough() else None

    def _at_stake(self) -> dict[str, object]:
        return {"open_accusations": len(self.context.database.open_accusations())}

    def _may_stop(self) -> bool:
        return not self._moves_due()

    def turn(self) -> int:
        """One look at everything; how many tasks and accusations are not over. Raises ChainError."""
        self._collect()
        context = self.context
        block = context.client.connection.block()
        alive = self._play()
        observed = []
        for view in self._open_tasks():
            if view.status.is_over:
                self._over(view)
            elif not self._stop.asked:
                alive += 1
                observed.append(keeper.observe(context, view, block.time, block.number))
                self._offer_actions(observed[-1])
        for key, job in auditing.replays(context, observed):
            if self._replays.full:
                break
            self._replays.offer(key, job)
        self._take_earnings()
        return alive + self._games.busy + self._sends.busy

    def _seen_enough(self) -> bool:
        """Whether the chosen tasks, or at least one task, are over."""
        chosen = set(self.context.settings.tasks)
        return chosen <= self.context.database.finished() if chosen else self._finished > 0

    def _open_tasks(self) -> list[TaskView]:
        """Tasks that are not over, or not yet known to be."""
        market, finished = self.context.client.market, self.context.database.finished()
        chosen = self.context.settings.tasks
        newest = market.tasks()
        numbers = [n for n in (chosen or range(1, newest + 1)) if n <= newest and n not in finished]
        return [market.task(number) for number in numbers]

    def _offer_actions(self, seen: Observation) -> None:
        """Offer the transactions that a task asks for."""
        for key, job in auditing.attestations(self.context, seen):
            self._sends.offer(key, job)
        what = action(seen)
        if what is not None:
            self._sends.offer(
                f"{what} {seen.view.task}", partial(keeper.perform, self.context, seen.view, what)
            )

    def _over(self, view: TaskView) -> None:
        """Forget a task once its accusation, if any, is over too."""
        task = view.task
        accusation = self.context.database.accusation(task)
        if accusation is not None:
            at_stake = accusation.reclaimable is not None and accusation.outcome is None
            if at_stake or f"game {task}" in self._games:
                return
            if accusation.outcome is None:  # somebody else was first, and nothing of ours is at stake
                self.context.database.update_accusation(task, outcome="needless")
            self._outcomes.add(accusation.outcome)
        self.context.database.finish(task)
        self.context.materials.drop(task)
        self._withdraw = True
        self._finished += 1
        self.context.log.info("over", task=task, status=view.status.name.lower())

    def _play(self) -> int:
        """Offer the next move of every accusation, those beyond `games` wait; how many are open."""
        tasks = [accusation.task for accusation in self.context.database.open_accusations()]
        with self._challenges_lock:
            self._challenges = {task: game for task, game in self._challenges.items() if task in tasks}
            held = set(self._challenges)
        for task in tasks:
            if task in held or len(held) < self.context.settings.games:
                self._games.offer(f"game {task}", partial(self._advance, task))
        return len(tasks)

    def _advance(self, task: int) -> None:
        """The next thing in one accusation."""
        context = self.context
        with self._challenges_lock:
            challenge = self._challenges.get(task)
        if challenge is None:
            material = context.material(context.client.market.task(task))
            challenger = context.strategy.challenger
            challenge = Challenge(
                context.client, context.database, material, task, challenger, context.settings.speed
            )
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
        client = self.context.client
        amount, _ = withdraw_above(client, client.deployment.parameters.challenge_bond)
        if amount:
            self.context.log.info("withdrawn", tokens=amount / TOKEN)

    def _collect(self) -> None:
        """Say what went wrong. A job is offered again later; only the chain's absence ends the loop."""
        for jobs in (self._games, self._sends, self._replays):
            for key, error in jobs.collect():
                defect = error if exit_code_of(error) is None else None
                self.context.log.warning("failed", job=key, error=str(error), exc_info=defect)

    def _verdict(self) -> ExitCode:
        return ExitCode.FRAUD if self._outcomes & {*WON, LOST} else ExitCode.FINE
