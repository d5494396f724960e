"""The replaceable parts of a solver's behaviour.

They decide how steps are run, where training starts, what is served, and what is answered in a game. The
defaults are honest. Parties outside this package that behave otherwise pass another strategy to the same
node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from protocol.dispute.moves import Move
from protocol.dispute.provider import Run
from protocol.dispute.view import GameView
from solver.catalog import Catalog
from solver.limits import App
from solver.server import application

if TYPE_CHECKING:
    from protocol.execution.replay import Executor, ExecutorFactory, Work
    from protocol.program.step import State

Start: TypeAlias = "Callable[[Work, State], State]"
AppFactory = Callable[[Catalog], App]
Defence = Callable[[GameView, Run], Sequence[Move]]
"""Returns all moves that the solver owes in a game now."""


def honest_executor(work: Work) -> Executor:
    """An executor of the committed program. Code that computes is imported only when there is a task."""
    from protocol.execution import replay

    return replay.honest_executor(work)


def honest_defence(game: GameView, run: Run) -> Sequence[Move]:
    """The moves of an honest run."""
    from protocol.dispute import defender

    return defender.moves(game, run)


def honest_start(_work: Work, initial: State) -> State:
    """The initial state that the terms commit to."""
    return initial


@dataclass(frozen=True)
class Strategy:
    """A solver's behaviour. `start` maps the bundle's initial state to the state from which training
    starts.
    """

    executor: ExecutorFactory = honest_executor
    start: Start = honest_start
    app: AppFactory = application
    defence: Defence = honest_defence


HONEST = Strategy()
