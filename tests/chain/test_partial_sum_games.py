"""Games over `scatter_sum` and `prefix_sum` with rows of three blocks, some inside frames of `repeat`."""

from __future__ import annotations

from functools import cache

import pytest
import torch

from protocol.dispute.in_process import Serving
from protocol.dispute.moves import Move
from protocol.dispute.provider import Run, frame_at
from protocol.dispute.splitting import block_words, split_move
from protocol.dispute.view import GameView, Phase, Verdict
from protocol.numerics.types import DType
from protocol.program import Builder, Op, Program, StepProgram, TensorType, repeat
from tests.adversaries.covering import covers_up
from tests.chain.arena import Arena, Subject
from tests.chain.corruption import SEGMENTS, STEPS, Corruptions, Site

pytestmark = pytest.mark.chain

ROWS, LENGTH, PLACES = 2, 384, 7
RUNS = 17
"""Number of runs of the repeated body: one composite of 16 runs, and one more run."""
X = TensorType(DType.I64, (ROWS, LENGTH))
TOTALS = TensorType(DType.I64, (ROWS, PLACES))
INDEX = TensorType(DType.I32, (LENGTH,))


def running() -> Program:
    """A program that takes the prefix sums of x once."""
    b = Builder("running")
    b.output(b.prefix_sum(b.input(X)))
    return b.build()


@cache
def made() -> Corruptions:
    """Corruptions of a step that takes prefix sums of x 17 times and adds them to the totals by index."""
    b = Builder("sums")
    x, totals, index = b.input(X), b.input(TOTALS), b.input(INDEX)
    (summed,) = repeat(b, running(), RUNS, [x])
    b.output(summed)
    b.output(b.add(totals, b.scatter_sum(index, summed, rows=PLACES)))
    program = StepProgram(b.build(), ("x", "totals"), datasets=1, constants=0)
    program.check()
    draw = torch.Generator().manual_seed(5)
    index_values = torch.randint(-2, PLACES + 2, INDEX.shape, dtype=torch.int32, generator=draw)
    state = {
        "x": torch.randint(-(2**62), 2**62, X.shape, generator=draw),
        "totals": torch.zeros(TOTALS.shape, dtype=torch.int64),
    }
    return Corruptions(Subject(program, (index_values,), state, SEGMENTS, STEPS), {})


def sites(op: Op) -> list[Site]:
    found = made().sites
    return [(path, n) for path, n in found if made().program(path).instructions[n].op is op]


def test_the_step_has_every_run_as_a_frame() -> None:
    assert len(sites(Op.PREFIX_SUM)) == RUNS
    assert sorted({len(path) for path, _ in sites(Op.PREFIX_SUM)}) == [1, 2]


@pytest.mark.parametrize("element", [0, 1 * LENGTH + 130, ROWS * LENGTH - 1])
@pytest.mark.parametrize("run", [0, 9, RUNS - 1])
def test_a_false_prefix_sum_is_judged_at_its_element(arena: Arena, run: int, element: int) -> None:
    assert made().check(arena, sites(Op.PREFIX_SUM)[run], lambda _: [element])


@pytest.mark.parametrize("element", [0, PLACES - 1, ROWS * PLACES - 2])
def test_a_false_scatter_sum_is_judged_at_its_element(arena: Arena, element: int) -> None:
    (site,) = sites(Op.SCATTER_SUM)
    assert made().check(arena, site, lambda _: [element])


def hides_behind(game: GameView, run: Run) -> Move | None:
    """The next move of a solver that covers up a wrong element. When it splits this element into words, every
    word is right except the last. The last word is chosen so that all words add up to the claimed word.
    """
    if game.phase is not Phase.SPLIT or game.selection is None or game.demand is not None:
        return covers_up(game, run)
    frame = frame_at(run, game.segment, game.step, game.path)
    instruction = frame.program.instructions[game.instruction]
    chosen = game.selection
    words = block_words(frame, instruction, chosen.element, chosen.lo, chosen.hi)
    return split_move(game, instruction, [*words[:-1], (chosen.word - sum(words[:-1])) % 2**64])


def test_a_false_block_behind_the_element_is_judged_without_a_chunk(arena: Arena) -> None:
    found = made().wrong_run(sites(Op.PREFIX_SUM)[0], lambda _: [0])
    assert found is not None
    subject, run = made().subject, found[0]
    (task,) = arena.submitted(subject, [run])
    ended = arena.play(task, subject, run, made().honest, Serving(run), SEGMENTS, hides_behind)
    assert ended.verdict is Verdict.SOLVER_FALSE
    assert (ended.judged["element"], ended.judged["computed"]) == (0, 0)
