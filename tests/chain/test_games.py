"""Whole games on the real contracts: with one wrong value in a step, the game ends at exactly that value.

There is one run for each primitive of the digits step, at the top and inside every callee. In this run, one
element of the primitive's result is wrong. `make test` plays a sample of these runs, `make test-heavy` all.
Some changes have no effect; their runs are not played.
"""

from __future__ import annotations

from functools import cache

import pytest
import torch

from examples import digits
from protocol.chain.errors import Reverted
from protocol.dispute.errors import NothingToChallenge
from protocol.dispute.in_process import Serving, Silent
from protocol.dispute.view import Verdict
from protocol.execution.replay import Replay
from protocol.program.library import kernels
from protocol.program.opcodes import Op
from tests.adversaries.perturbing import (
    Perturbation,
    PerturbedExecutor,
    SkippingExecutor,
    find,
    one_ulp,
    producer_of_output,
)
from tests.chain.arena import Arena, Ended, Subject, replay
from tests.chain.corruption import SEGMENTS, STEPS, WRONG_STEP, Corruptions, Site

pytestmark = pytest.mark.chain

SAMPLE = 24
"""About how many corruptions `make test` plays: every k-th one, so that they are spread over the program."""


@cache
def made() -> Corruptions:
    """Corruptions of a shortened digits task."""
    torch.set_num_threads(1)
    captured = digits.build(SEGMENTS * STEPS)
    task = Subject(captured.step_program, captured.fixed, captured.initial_state(1), SEGMENTS, STEPS)
    return Corruptions(task, kernels(captured.step_program.program, captured.hints))


def subject() -> Subject:
    """The shortened digits task."""
    return made().subject


def honest() -> Replay:
    """The honest run."""
    return made().honest


def play(arena: Arena, run: Replay, *, silent: bool = False) -> Ended:
    """Play a game over the run."""
    return made().play(arena, run, silent=silent)


def test_every_kind_of_value_is_found_and_judged(arena: Arena) -> None:
    everywhere = made().sites
    check_corruptions(arena, everywhere[:: len(everywhere) // SAMPLE])


@pytest.mark.heavy
@pytest.mark.timeout(3_000)
def test_every_value_is_found_and_judged(arena: Arena) -> None:
    check_corruptions(arena, made().sites)


def check_corruptions(arena: Arena, chosen: list[Site]) -> None:
    """Check that each corruption is judged at its own instruction and element. At most a quarter of them may
    have no effect.
    """
    effects = [made().check(arena, site, middle_and_ends) for site in chosen]
    assert effects.count(False) <= len(chosen) // 4


def middle_and_ends(elements: int) -> list[int]:
    """Elements to try, the middle one first."""
    return list(dict.fromkeys((elements // 2, 0, elements - 1)))


def test_a_skipped_segment_ends_at_an_output(arena: Arena) -> None:
    task = subject()
    run = replay(task, SkippingExecutor(task.program, task.fixed, {}, 3, 4))
    ended = play(arena, run)
    assert ended.verdict is Verdict.SOLVER_FALSE
    assert ended.moves[-1] == "judgeOutput"


@pytest.mark.parametrize(("op", "callee", "which"), [(Op.DOT, "linear", 1), (Op.EXPONENT, "linear", 2)])
def test_a_silent_solver_is_walked_down_by_demands(arena: Arena, op: Op, callee: str, which: int) -> None:
    path, number = find(subject().program.program, op, callee, which)
    found = made().wrong_run((path, number), middle_and_ends)
    assert found is not None
    run, element = found
    ended = play(arena, run, silent=True)
    assert ended.verdict is Verdict.SOLVER_FALSE
    assert (ended.view.path, ended.judged["n"], ended.judged["element"]) == (path, number, element)
    assert ended.moves.count("demand") == ended.moves.count("revealNode") + ended.moves.count("revealLeaf")
    assert ended.moves.count("demand") >= 6


def test_a_solver_that_answers_nothing_at_all_loses_on_the_clock(arena: Arena) -> None:
    task = subject()
    wrong = Perturbation(*producer_of_output(task.program.program, 0), 0, one_ulp, WRONG_STEP, WRONG_STEP)
    run = replay(task, PerturbedExecutor(task.program, task.fixed, {}, [wrong]))
    (number,) = arena.submitted(task, [run])
    ended = arena.play(number, task, run, honest(), Silent(), None, lambda _view, _run: None)
    assert ended.verdict is Verdict.SOLVER_SILENT


def test_a_false_accuser_finds_no_move_that_wins(arena: Arena) -> None:
    task = subject()
    wrong = Perturbation(*producer_of_output(task.program.program, 0), 0, one_ulp, WRONG_STEP, WRONG_STEP)
    accuser = replay(task, PerturbedExecutor(task.program, task.fixed, {}, [wrong]))
    (number,) = arena.submitted(task, [honest()])
    bond = arena.submitter.market.terms(number).bond
    before = arena.challenger.vault.free(arena.challenger.address)
    with pytest.raises((Reverted, NothingToChallenge)):
        arena.play(number, task, honest(), accuser, Serving(honest()), 2)
    game = arena.challenger.game.games()
    arena.devnet.skip(1_000)
    arena.solver.game.time_out(game)
    assert arena.challenger.game.game(game).verdict is Verdict.CHALLENGER_SILENT
    assert arena.challenger.vault.free(arena.challenger.address) == before - bond
