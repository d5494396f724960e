"""Solvers that compute something other than the task (attacks 1 to 5, 9 to 11, 58). Every game ends at the
wrong value, or at the input or output that does not fit.

In every case, the challenger is paid, the submitter gets escrow and restitution, and the solver loses the
stake.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from protocol.chain.views import TaskStatus
from protocol.dispute import defender
from protocol.dispute.moves import Move
from protocol.dispute.provider import Run, frame_at
from protocol.dispute.splitting import block_words, split_move
from protocol.dispute.view import GameView, Phase, Verdict
from protocol.execution.replay import HonestExecutor, Replay
from protocol.program.execute import Interpreter
from protocol.program.opcodes import Op
from tests.adversaries.covering import covers_up
from tests.adversaries.perturbing import (
    Perturbation,
    SkippingExecutor,
    doubled,
    find,
    one_ulp,
    producer_of_operand,
    producer_of_output,
    shifted,
)
from tests.attacks.purses import SLASHED
from tests.attacks.ring import WRONG_STEP, Defence, fights, other_data, perturbed, subject
from tests.chain.arena import Arena, replay

pytestmark = pytest.mark.chain

LOGIT = 37 * 10 + 7  # row 37, column 7 of the second layer's [64, 10] products
NAN, INFINITY, NEGATIVE_INFINITY = 0x7FC0_0000, 0x7F80_0000, 0xFF80_0000


@dataclass(frozen=True)
class Place:
    """An element of an instruction's result."""

    path: tuple[int, ...]
    number: int
    element: int


def weight() -> Place:
    """The first weight in the optimiser's output."""
    return Place(*producer_of_output(subject().program.program, 0), 0)


def rate() -> Place:
    """The learning rate that the optimiser reads."""
    program = subject().program.program
    optimiser = producer_of_output(program, 0)[0][0]
    operand = len(program.instructions[optimiser].operands) - 1
    return Place(*producer_of_operand(program, optimiser, operand), 0)


def product() -> Place:
    """One element of the second layer's matrix product, which is a sum. A row of the product's operands takes
    two chunks.
    """
    return Place(*find(subject().program.program, Op.DOT, "linear", which=1), LOGIT)


def judged_at(ring: Arena, place: Place, run: Replay, defence: Defence = covers_up) -> list[str]:
    """Play a game and check that the element at `place` is judged false; returns the moves."""
    ended, status, paid = fights(ring, run, defence=defence)
    assert (ended.verdict, status) == (Verdict.SOLVER_FALSE, TaskStatus.SLASHED)
    assert (ended.view.path, ended.judged["n"]) == (place.path, place.number)
    assert ended.judged["element"] == place.element
    assert ended.judged["claimed"] != ended.judged["computed"]
    assert paid == SLASHED
    assert paid.total == 0
    return ended.moves


def wrong(
    place: Place, change: Callable[[int], int], first: int = WRONG_STEP, last: int = WRONG_STEP
) -> Replay:
    """A run in which the element at `place` is changed in steps `first` to `last`."""
    return perturbed(Perturbation(place.path, place.number, place.element, change, first, last))


def test_a_wrong_learning_rate_from_some_step_on(ring: Arena) -> None:
    judged_at(ring, rate(), wrong(rate(), doubled, first=4, last=6))


def test_one_weight_one_ulp_off_in_one_step(ring: Arena) -> None:
    judged_at(ring, weight(), wrong(weight(), one_ulp))


@pytest.mark.parametrize("bits", [NAN, INFINITY, NEGATIVE_INFINITY], ids=["nan", "inf", "-inf"])
def test_a_planted_nan_or_infinity(ring: Arena, bits: int) -> None:
    judged_at(ring, weight(), wrong(weight(), lambda _bits: bits))


def test_random_words_that_are_not_the_steps(ring: Arena) -> None:
    """The run uses one wrong random word. The generator of these words draws batches and, in other tasks,
    dropout masks.
    """
    place = Place(*find(subject().program.program, Op.PHILOX), 3)
    judged_at(ring, place, wrong(place, lambda bits: bits ^ 0x8000_0000))


def test_a_wrong_value_in_one_block_of_a_product(ring: Arena) -> None:
    moves = judged_at(ring, product(), wrong(product(), shifted))
    assert moves[-3:] == ["selectElement", "split", "judgeBlock"]


def test_block_results_that_fold_rightly_and_are_wrong_twice(ring: Arena) -> None:
    moves = judged_at(ring, product(), wrong(product(), shifted), wrong_twice)
    assert moves[-3:] == ["selectElement", "split", "judgeBlock"]


def wrong_twice(view: GameView, run: Run) -> Move | None:
    """The honest defence, except that two block results of a split are wrong. Together they fold to the false sum."""
    if view.phase is not Phase.SPLIT or view.selection is None or view.demand is not None:
        return defender.next_move(view, run)
    frame = frame_at(run, view.segment, view.step, view.path)
    instruction = frame.program.instructions[view.instruction]
    chosen = view.selection
    words = block_words(frame, instruction, chosen.element, chosen.lo, chosen.hi)
    words[0] = (words[0] + 12_345) % (1 << 64)
    words[1] = (chosen.word - words[0]) % (1 << 64)
    return split_move(view, instruction, words)


@pytest.mark.parametrize("skipped", [(3, 4), (6, 6)], ids=["a whole segment", "the last step"])
def test_steps_that_were_not_made(ring: Arena, skipped: tuple[int, int]) -> None:
    """The run skips either a whole segment, so that a checkpoint is repeated, or only the last step of the
    run. In both cases the submitted state is not the output of the trace.
    """
    task = subject()
    ended, status, paid = fights(ring, replay(task, SkippingExecutor(task.program, task.fixed, {}, *skipped)))
    assert (ended.verdict, status, paid) == (Verdict.SOLVER_FALSE, TaskStatus.SLASHED, SLASHED)
    assert ended.moves[-1] == "judgeOutput"


def test_rows_in_another_order(ring: Arena) -> None:
    """The run uses the dataset's rows in another order. The judgment of the false input only compares roots;
    it computes nothing.
    """
    other = other_data()
    ended, status, paid = fights(
        ring, replay(other, HonestExecutor(other.program, other.fixed, Interpreter({})))
    )
    assert (ended.verdict, status, paid) == (Verdict.SOLVER_FALSE, TaskStatus.SLASHED, SLASHED)
    assert ended.moves[-1] == "judgeInput"
    assert ended.judged["claimed"] != ended.judged["due"]
