"""How a verifier behaves where it has a choice: what replays the steps, whom it asks, which move it makes.

The defaults are honest. Parties outside this package that behave otherwise give the same node another conduct.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from protocol.dispute import challenger
from protocol.dispute.heard import Heard
from protocol.dispute.moves import Move
from protocol.dispute.parties import Run, Words
from protocol.dispute.view import GameView
from protocol.program.step import StepProgram
from protocol.replay import ExecutorFactory, honest_executor
from protocol.task import Terms
from verifier.words import HttpWords, Shapes, SolverWords

WordsFactory = Callable[[str, int, StepProgram, Terms], SolverWords]
"""From the address that the solver announced, the task, its program and its terms."""
Challenger = Callable[[GameView, Run, Heard, Words], Move | None]


def over_http(url: str, task: int, program: StepProgram, terms: Terms) -> SolverWords:
    """The solver's own HTTP service. A question may take a fifth of the challenger's clock: two fit into a move."""
    patience = min(30.0, max(1.0, terms.challenger_clock / 5))
    return HttpWords(url, task, Shapes(program, terms.segments, terms.segment_steps), patience)


@dataclass(frozen=True)
class Conduct:
    """The collaborators of a node."""

    executor: ExecutorFactory = honest_executor
    words: WordsFactory = over_http
    challenger: Challenger = challenger.next_move


HONEST = Conduct()
