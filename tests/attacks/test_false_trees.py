"""Solvers that hide what they computed: false trees, random roots, answers that are withheld, late or false
(attacks 6 to 8, 13, 14, 20, 47).

No served data is trusted, and everything can be demanded on-chain. So a solver that hides loses as much as
one that shows its false values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256

import pytest

from protocol.chain.views import TaskStatus
from protocol.commitments import state_root
from protocol.dispute import defender
from protocol.dispute.in_process import Serving, Silent
from protocol.dispute.moves import Move
from protocol.dispute.provider import Frame, Run
from protocol.dispute.view import GameView, Verdict
from tests.adversaries.covering import covers_up
from tests.attacks.purses import SLASHED, Purses
from tests.attacks.ring import Defence, fights, honest, one_ulp_off
from tests.chain.arena import Arena, Ended

pytestmark = pytest.mark.chain

SEGMENT = 2
RANDOM = sha256(b"no tree at all").digest()


class Altered:
    """A run with the checkpoints of `run`, but with a different tensor or state inside a segment, or with
    traces of a different step.
    """

    def __init__(
        self, run: Run, tensor: bytes | None = None, state: bytes | None = None, shift: int = 0
    ) -> None:
        self._run, self._tensor, self._state, self._shift = run, tensor, state, shift

    def segment_roots(self) -> Sequence[bytes] | None:
        """The segment roots of the run, unchanged."""
        return self._run.segment_roots()

    def tensor_roots(self, segment: int, step: int) -> Sequence[bytes]:
        """The tensor roots of a state. In the middle state of a segment, `tensor` replaces the first root."""
        roots = list(self._run.tensor_roots(segment, step))
        if self._tensor is not None and step == 1:
            roots[0] = self._tensor
        return roots

    def step_roots(self, segment: int) -> Sequence[bytes]:
        """The state roots. The middle one is replaced by `state`, if given, or by the root of the altered
        tensors, if `tensor` is given.
        """
        first, middle, last = self._run.step_roots(segment)
        if self._tensor is not None:
            middle = state_root(self.tensor_roots(segment, 1))
        return [first, self._state or middle, last]

    def constant_roots(self) -> Sequence[bytes]:
        """The roots of the run's constants, unchanged."""
        return self._run.constant_roots()

    def frame(self, segment: int, step: int) -> Frame:
        """The frame of the step that is `shift` steps later than `step`."""
        return self._run.frame(segment, step + self._shift)


def slashed(fight: tuple[Ended, TaskStatus, Purses], verdict: Verdict) -> list[str]:
    """Check that the solver is slashed with this verdict; returns the moves."""
    ended, status, paid = fight
    assert (ended.verdict, status, paid) == (verdict, TaskStatus.SLASHED, SLASHED)
    return ended.moves


def test_honest_states_in_a_false_step_tree(ring: Arena) -> None:
    """The segment's first and last states are right. The state between them has another tensor, which is not
    the output of the step before it.
    """
    run = Altered(honest(), tensor=RANDOM)
    moves = slashed(fights(ring, run, segment=SEGMENT), Verdict.SOLVER_FALSE)
    assert moves[-1] == "judgeOutput"


def test_a_step_tree_over_no_state_at_all(ring: Arena) -> None:
    run = Altered(honest(), state=RANDOM)
    moves = slashed(fights(ring, run, segment=SEGMENT), Verdict.SOLVER_SILENT)
    assert moves[-1] == "demand"


def test_the_trace_of_another_step(ring: Arena) -> None:
    """The step tree is the run's own. The trace is that of the next step, which starts from another state."""
    moves = slashed(fights(ring, Altered(one_ulp_off(), shift=1)), Verdict.SOLVER_FALSE)
    assert moves[-1] == "judgeInput"


def test_a_trace_root_that_is_random_bytes(ring: Arena) -> None:
    def posts_nothing_real(view: GameView, run: Run) -> Move | None:
        move = defender.next_move(view, run)
        if move is None or move.function != "expandTrace":
            return move
        return replace(move, arguments=(move.arguments[0], RANDOM))

    moves = slashed(fights(ring, one_ulp_off(), defence=posts_nothing_real), Verdict.SOLVER_SILENT)
    assert moves[-3:] == ["selectStep", "expandTrace", "demand"]


class ValuesWithheld(Serving):
    """Serves everything except values."""

    def value(self, _segment: int, _step: int, _path: tuple[int, ...], _leaf: int) -> bytes:
        """An empty value."""
        return b""


@pytest.mark.parametrize(
    ("served", "least"),
    [(Silent, 6), (lambda: ValuesWithheld(one_ulp_off()), 1), (lambda: Serving(honest()), 3)],
    ids=["all of it", "the value alone", "honest data beside a false run"],
)
def test_withheld_or_false_answers_are_demanded_on_chain(
    ring: Arena, served: Callable[[], Silent | Serving], least: int
) -> None:
    """Answers that are withheld or false are demanded on the chain, and the solver is found false. `least` is
    the minimum number of demands that the challenger needs to reach the wrong value.
    """
    moves = slashed(fights(ring, one_ulp_off(), provider=served(), defence=covers_up), Verdict.SOLVER_FALSE)
    demands = moves.count("demand")
    assert demands >= least
    assert demands == moves.count("revealNode") + moves.count("revealLeaf")
    assert moves[-1].startswith("judge")


def in_the_last_seconds(ring: Arena) -> Defence:
    """A defence that gives its first answer when 100 s of its clock are left, and each later one at once."""

    def late(view: GameView, run: Run) -> Move | None:
        at = max(ring.solver.game.game(view.game).deadline - 100, ring.solver.now() + 1)
        ring.devnet.connection.request("evm_setNextBlockTimestamp", hex(at), attempts=1)
        return covers_up(view, run)

    return late


def test_withheld_and_then_served_in_the_last_seconds(ring: Arena) -> None:
    moves = slashed(
        fights(ring, one_ulp_off(), provider=Silent(), defence=in_the_last_seconds(ring)),
        Verdict.SOLVER_FALSE,
    )
    assert moves[-1] == "judge"
