"""Games against this solver: found, watched, answered in time (dispute.md section 6).

Which move to make is `Strategy.defence`; here it is sent, once, whatever is restarted. Replays for games are the
defence's own, so that HTTP clients cannot hold them up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from protocol.chain.errors import Reverted
from protocol.chain.game_view import GameReader
from protocol.dispute.errors import NothingToReveal
from protocol.dispute.provider import Run
from protocol.dispute.view import GameView, Phase
from solver.context import Context
from solver.database import Stage


class Defence:
    """Watches every game on a task of the catalog, as long as the task is not over: then there is nothing to lose."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._seen = 0
        self._open: dict[int, GameReader] = {}
        self._tasks: dict[int, int] = {}
        self._runs: dict[int, Run] = {}

    def tick(self) -> bool:
        """Answer what is due now, the most urgent first. True while this solver owes a move somewhere.

        The chain gives a clock for each move that is owed, in the order in which they were asked for. Answered in
        another order, the first would be late.
        """
        self._discover()
        game = self._context.client.game
        owing = [self._answer(number) for number in by_deadline(self._open, lambda n: game.game(n).deadline)]
        self._context.metrics.games.set(len(self._open))
        return any(owing)

    def _discover(self) -> None:
        game = self._context.client.game
        newest = game.games()
        for number in range(self._seen + 1, newest + 1):
            try:
                task = game.game(number).task
            except Reverted as error:  # games of others are read too: none of them may end this solver
                self._context.log.warning("game cannot be read", game=number, error=error.name)
                continue
            if task == 0:  # a node behind the one that counted: looked at again, or it would never be seen
                newest = number - 1
                break
            run_store, row = self._context.catalog.run_store(task), self._context.database.task(task)
            if run_store is None or row is None or row.stage is Stage.OVER:
                continue
            first = self._context.client.deployment.block
            self._open[number] = GameReader(game, number, run_store.program.program, first)
            self._tasks[number] = task
            if task not in self._runs:
                self._runs[task] = run_store.replay()
            self._context.log.warning("challenged", game=number, task=task)
        self._seen = newest

    def _answer(self, number: int) -> bool:
        context = self._context
        view = self._open[number].view()
        if view.phase is Phase.CLOSED:
            self._close(number)
            context.log.warning("game over", game=number, task=view.task, verdict=view.verdict.name)
            return False
        if not view.solver_to_move:
            self._call_time(view)
            return False
        try:
            move = context.strategy.defence(view, self._runs[view.task])
        except NothingToReveal as error:
            context.log.error("no answer", game=number, error=str(error))
            return False
        if move is None:
            return False
        try:
            receipt = context.client.game.send_move(move, view.head)
        except Reverted as error:  # the game has moved on, or the time is over: look again
            context.log.warning("move refused", game=number, move=move.function, error=error.name)
            return True
        context.count(move.function, receipt, game=number, note=move.note)
        return True

    def _close(self, number: int) -> None:
        """Watch a game no more. After a task's last one, what was replayed for it is let go."""
        del self._open[number]
        task = self._tasks.pop(number)
        if task not in self._tasks.values():
            del self._runs[task]

    def _call_time(self, view: GameView) -> None:
        """End a game whose challenger let its time run out."""
        game, client = view.game, self._context.client
        if client.now() > client.game.game(game).deadline:
            self._context.send("timeOut", lambda: client.game.time_out(game), game=game)


def by_deadline(games: Iterable[int], deadline: Callable[[int], int]) -> list[int]:
    """Numbers of games, the one that ends first before all others; equal ones in the order of their numbers."""
    return sorted(games, key=lambda number: (deadline(number), number))
