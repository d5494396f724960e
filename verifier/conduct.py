"""How a verifier behaves where it has a choice: what replays the steps, whom it asks, which move it makes.

The defaults are honest. Parties outside this package that behave otherwise give the same node another conduct.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import Tensor

from protocol.bundles import Bundle
from protocol.dispute import challenger
from protocol.dispute.heard import Heard
from protocol.dispute.moves import Move
from protocol.dispute.parties import Run, Words
from protocol.dispute.view import GameView
from protocol.program.execute import Interpreter, Kernel
from protocol.program.library import kernels
from protocol.program.step import StepProgram
from protocol.replay import Executor, HonestExecutor
from protocol.task import Terms
from verifier.words import HttpWords, Shapes, SolverWords


@dataclass(frozen=True)
class Work:
    """What there is to replay: a task's program, its dataset tensors and constants, and kernels by program id."""

    task: int
    program: StepProgram
    fixed: tuple[Tensor, ...]
    kernels: Mapping[bytes, Kernel]

    @classmethod
    def of(cls, task: int, bundle: Bundle) -> Work:
        """The work that a verified bundle describes."""
        program = bundle.step
        return cls(task, program, bundle.fixed(), kernels(program.program, bundle.hints))


ExecutorFactory = Callable[[Work], Executor]
WordsFactory = Callable[[str, int, StepProgram, Terms], SolverWords]
"""From the address that the solver announced, the task, its program and its terms."""
Challenger = Callable[[GameView, Run, Heard, Words], Move | None]


def honest_executor(work: Work) -> Executor:
    """The committed program, by fused kernels where there are any."""
    return HonestExecutor(work.program, work.fixed, Interpreter(work.kernels))


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
