"""The replaceable parts of a verifier's behaviour: how steps are replayed, how data are requested, and
which move is made in a game.

The defaults are honest. Parties outside this package that behave otherwise pass another strategy to the
same node.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from protocol.dispute.moves import Move
from protocol.dispute.provider import Provider, Run
from protocol.dispute.revealed import Revealed
from protocol.dispute.view import GameView
from protocol.node.addresses import Address
from protocol.node.reach import Reach
from protocol.tasks.task import Terms
from verifier.findings import FETCH_SHARE
from verifier.solver_client import CheckpointProvider, Shapes, SolverClient

if TYPE_CHECKING:
    from protocol.execution.replay import Executor, ExecutorFactory, Work
    from protocol.program.step import StepProgram

ProviderFactory: TypeAlias = "Callable[[Address | None, int, StepProgram, Terms, Reach], CheckpointProvider]"
"""Makes a provider from the announced address (None if there is no usable one), the task, its program and
terms, and the allowed addresses.
"""
Challenger = Callable[[GameView, Run, Revealed, Provider], Move | None]


def honest_executor(work: Work) -> Executor:
    """An executor of the committed program. The modules that compute are not imported until there is a task."""
    from protocol.execution import replay

    return replay.honest_executor(work)


def honest_challenger(game: GameView, run: Run, revealed: Revealed, provider: Provider) -> Move | None:
    """The move that follows from our own run."""
    from protocol.dispute import challenger

    return challenger.next_move(game, run, revealed, provider)


def over_http(
    address: Address | None, task: int, program: StepProgram, terms: Terms, reach: Reach
) -> CheckpointProvider:
    """A client of the HTTP service of a solver or a juror. The time limit of a question is the client's
    patience plus the time that the answer's bytes take. The patience is a sixtieth of the challenger's time,
    but at least 1 second and at most 30 seconds. A game needs fewer than 30 questions, so a patience of a
    sixtieth adds up to less than half of the challenger's time. A checkpoint must arrive within `FETCH_SHARE`
    of the time to attest, no matter how large it is, or within the patience if that is longer.
    """
    patience = min(30.0, max(1.0, terms.game_time / 60))
    shapes = Shapes(program, terms.segments, terms.segment_steps)
    longest = max(patience, terms.attest_period * FETCH_SHARE)
    return SolverClient(address, task, shapes, patience, reach, longest)


@dataclass(frozen=True)
class Strategy:
    """A verifier's behaviour."""

    executor: ExecutorFactory = honest_executor
    provider: ProviderFactory = over_http
    challenger: Challenger = honest_challenger


HONEST = Strategy()
