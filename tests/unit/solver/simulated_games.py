"""A solver's games in simulated time: the real `Defence` answers them at a third of the machine's rates.

`Defence` alone decides the order of answers. Challengers ask at any time, and training never pauses by
itself. A move is mined after the longest time that the admission allows for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import ceil, inf
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from protocol.chain import game_view
from protocol.chain.receipts import Receipt
from protocol.dispute.view import Phase, Verdict
from protocol.execution.turns import Turns
from protocol.tasks.admission import (
    Clocks,
    Engagement,
    Rates,
    Work,
    longest_step,
    seconds_beside,
)
from protocol.tasks.task import DEMANDS, SAFETY, SPLITS
from solver import defence
from solver.context import Context
from solver.database import Stage
from solver.defence import Defence
from solver.metrics import Metrics

RATES = Rates(1_000 * SAFETY)
"""At a third of these rates, an operation takes a millisecond."""
RECEIPT = Receipt("0x", "revealNode", 1, "0x", True, 21_000, None, ())


@dataclass
class Game:
    """A game. The challenger asks question k after `thinks[k]` s; the answer takes `answers[k]` s."""

    task: int
    opened: float
    answers: Sequence[float]
    thinks: Sequence[float]
    made: int = 0
    spent: float = 0.0
    mined: float = inf
    """When the transaction in progress will be mined; infinite if none is in progress."""
    due: float = field(init=False)

    def __post_init__(self) -> None:
        self.due = self.opened + self.thinks[0]

    @property
    def over(self) -> bool:
        """Whether all answers are mined."""
        return self.made == len(self.answers)

    def settle(self, now: float) -> None:
        """Record the answer once it is mined; the challenger's time runs from then."""
        if self.mined > now:
            return
        self.spent += self.mined - self.due
        self.made += 1
        self.due, self.mined = inf if self.over else self.mined + self.thinks[self.made], inf


@dataclass(frozen=True)
class Task:
    """A task and its games. Each game has its own clock of `engagement.seconds`.

    A step takes `step` seconds and is never interrupted.
    """

    engagement: Engagement
    step: float
    games: tuple[Game, ...]


class Done(Exception):
    """Ends the simulation: every game is over, or a game is late."""


class _Turns(Turns):
    """Turns of a simulated solver. If several urgent turns are asked for at the same time, the first of them
    waits for the training step in progress.
    """

    def __init__(self, machine: Machine) -> None:
        super().__init__()
        self._machine = machine

    @contextmanager
    def urgent(self, between: Callable[[], None] = lambda: None, by: float = -inf) -> Iterator[None]:
        """An urgent turn as in the solver. It begins after the training step in progress."""
        if not self._urgent:
            self._machine.end_step()
        with super().urgent(between, by):
            yield
        if not self._urgent:
            self._machine.trains_from = self._machine.now

    @contextmanager
    def reserved(self) -> Iterator[None]:
        """A reservation as in the solver. Training continues after it."""
        with super().reserved():
            yield
        if not self._urgent:
            self._machine.trains_from = self._machine.now


class Machine:
    """Plays all games of the tasks; `late` are the games whose clock ran out."""

    def __init__(self, tasks: Sequence[Task], clocks: Clocks, trained: float, phase: float) -> None:
        self.tasks = tasks
        self.clocks = clocks
        self.games = [game for task in tasks for game in task.games]
        self.now = 0.0
        self.trained = trained
        self.trains_from = -phase
        self.late: list[int] = []

    def end_step(self) -> None:
        """Advance to the end of the training step in progress."""
        if self.trained:
            steps = ceil((self.now - self.trains_from) / self.trained)
            self.now = max(self.now, self.trains_from + steps * self.trained)

    def play(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        """Play until every game is over or one is late, and return the late games."""
        monkeypatch.setattr(defence, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(game_view, "GameReader", self._reader)
        self.turns = _Turns(self)
        solver = Defence(self._context())
        solver._closed = cast(Any, SimpleNamespace(is_set=lambda: False, wait=self._wait))
        for number, game in enumerate(self.games, 1):
            solver._watch(number, game.task)
        try:
            solver._run()
        except Done:
            pass
        else:
            raise solver.failure or AssertionError("it ended")
        return self.late

    def _wait(self, seconds: float) -> None:
        """Advance to the next time at which the solver looks at the games and finds something new. The solver
        calls this when nothing is due.
        """
        for game in self.games:
            game.settle(self.now)
        if self.late or all(game.over for game in self.games):
            raise Done
        soonest = min(game.due if game.mined == inf else game.mined for game in self.games)
        self.now += seconds * max(1, ceil((soonest - self.now) / seconds))

    def _deadline(self, game: Game) -> float:
        return game.due + self.tasks[game.task - 1].engagement.seconds - game.spent

    def _state(self, number: int) -> SimpleNamespace:
        game = self.games[number - 1]
        game.settle(self.now)
        asks = game.due <= self.now and not game.over
        left = len(game.answers) - game.made
        return SimpleNamespace(
            game=number,
            task=game.task,
            waits=False,
            phase=Phase.CLOSED if game.over and game.mined == inf else Phase.FRAME,
            verdict=Verdict.NONE,
            depth=9,
            demands=DEMANDS + SPLITS - left,
            demand_open=int(asks),
            deadline=self._deadline(game) if asks else self.now + 10**9,
            head=b"",
        )

    def _reader(self, _game: object, number: int, *_about: object) -> SimpleNamespace:
        game = self.games[number - 1]

        def view() -> SimpleNamespace:
            state = self._state(number)
            closed = game.over and game.mined == inf
            return SimpleNamespace(
                task=game.task,
                game=number,
                phase=Phase.CLOSED if closed else Phase.FRAME,
                solver_to_move=bool(state.demand_open),
                verdict=Verdict.NONE,
                head=b"",
            )

        return SimpleNamespace(view=view)

    def _answer(self, view: SimpleNamespace, _run: object) -> list[SimpleNamespace]:
        """Compute the next answer of a game step by step, as `InTurns` does."""
        game = self.games[view.game - 1]
        left, step = game.answers[game.made], self.tasks[game.task - 1].step
        while left > 0:
            with self.turns.ordinary():
                pass
            self.now += min(step, left)
            left -= step
        return [SimpleNamespace(function="revealNode", note="", game=view.game)]

    def _send(self, moves: list[SimpleNamespace], _head: object) -> list[SimpleNamespace]:
        game = self.games[moves[0].game - 1]
        game.mined = self.now + self.clocks.inclusion
        if game.mined > self._deadline(game) + 1e-6:
            self.late.append(moves[0].game)
        return moves

    def _outcomes(self, sent: list[SimpleNamespace]) -> list[Receipt | None]:
        found: list[Receipt | None] = []
        for move in sent:
            game = self.games[move.game - 1]
            game.settle(self.now)
            found.append(RECEIPT if game.mined == inf else None)
        return found

    @contextmanager
    def _view(self) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(time=self.now, number=0, hash="0x0", parent="")

    def _context(self) -> Context:
        engagements = [task.engagement for task in self.tasks]
        each = seconds_beside(self.clocks, longest_step(engagements, RATES))
        calls = SimpleNamespace(
            games=lambda: len(self.games),
            game=self._state,
            send_moves=self._send,
            ahead=lambda _numbers: None,
        )
        rows = [SimpleNamespace(task=task, stage=Stage.SUBMITTED) for task in range(1, 1 + len(self.tasks))]
        run_store = SimpleNamespace(program=SimpleNamespace(program=None, state_types=()), replay=object)
        context = SimpleNamespace(
            client=SimpleNamespace(
                game=calls,
                outcomes=self._outcomes,
                deployment=SimpleNamespace(block=0),
                connection=SimpleNamespace(view=self._view, chain=SimpleNamespace(reorg_depth=8)),
            ),
            catalog=SimpleNamespace(run_store=lambda _task: run_store),
            count=lambda *_what, **_about: None,
            database=SimpleNamespace(
                task=lambda task: rows[task - 1],
                tasks=lambda: rows,
                live=lambda *_stages: [row.task for row in rows],
            ),
            metrics=QUIET,
            settings=SimpleNamespace(pace=self.clocks.look),
            turns=self.turns,
            strategy=SimpleNamespace(defence=self._answer),
            log=LOG,
            seconds_each=lambda: each,
        )
        return cast(Context, context)


QUIET = Metrics()


def _defect(event: str, **about: object) -> None:
    raise AssertionError(f"{event}: {about}")


LOG = SimpleNamespace(warning=lambda *_a, **_b: None, error=_defect)


def random_tasks(random: Random) -> list[Task]:
    """One to three tasks, each with up to three games. Each game has up to four answers. The windows of the
    tasks are chosen later.

    Some answers cost nothing, because their results are kept. Games open together or at random times, and
    challengers ask at once or after pauses.
    """
    tasks = []
    for task in range(1, 1 + random.randint(1, 3)):
        step = random.choice((0.1, 0.5, 2.0, 8.0))
        moves = random.randint(1, 4)
        at_once, quick = random.random() < 0.5, random.random() < 0.5
        games = []
        for _ in range(random.randint(1, 3)):
            count = random.randint(1, moves)
            answers = [random.choice((0.0, step, random.uniform(0, 40))) for _ in range(count)]
            thinks = [0.0 if quick else random.choice((0.0, random.uniform(0, 60))) for _ in range(count)]
            games.append(Game(task, 0.0 if at_once else random.uniform(0, 100), answers, thinks))
        work = Work(ceil(1_000 * sum(sum(game.answers) for game in games)), transactions=moves)
        engagement = Engagement(f"games of task {task}", work, 0.0, Work(ceil(1_000 * step)), moves)
        tasks.append(Task(engagement, step, tuple(games)))
    return tasks
