"""The whole game on the real contracts: one wrong value anywhere in a step, and the game ends at exactly that value.

Every primitive of the digits step, at the top and inside every callee, is changed in one element of one run.
`make test` plays a sample of them, `make test-heavy` all.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest
import torch

from examples import digits
from protocol.chain.errors import Reverted
from protocol.dispute.errors import NothingToChallenge
from protocol.dispute.parties import Frame
from protocol.dispute.view import Verdict
from protocol.program.execute import Interpreter, Path
from protocol.program.library import kernels
from protocol.program.opcodes import Op
from protocol.program.program import Program
from protocol.program.step import State
from protocol.replay import HonestExecutor, Replay
from tests.adversaries.covering import covers_up
from tests.adversaries.perturbing import (
    Perturbation,
    PerturbedExecutor,
    SkippingExecutor,
    find,
    one_ulp,
    producer_of_output,
)
from tests.chain.arena import Arena, Ended, Serving, Silent, Subject, arena, replay

pytestmark = pytest.mark.chain

SEGMENTS, STEPS = 2, 2
WRONG_STEP = 3  # segment 2, step 1
SAMPLE = 24
"""Corruptions in `make test`: every k-th of all, spread over the program."""


@cache
def subject() -> Subject:
    """The digits task, short."""
    torch.set_num_threads(1)
    captured = digits.build(SEGMENTS * STEPS)
    return Subject(captured.step_program, captured.fixed, captured.initial_state(1), SEGMENTS, STEPS)


@cache
def honest() -> Replay:
    """The honest run."""
    task = subject()
    interpreter = Interpreter(kernels(task.program.program, digits.build(SEGMENTS * STEPS).hints))
    return replay(task, HonestExecutor(task.program, task.fixed, interpreter))


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    """One anvil for all games of this file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASSAY_HOME", str(tmp_path_factory.mktemp("home")))
        with arena() as made:
            yield made


class FalseState:
    """A perturbed trace beside a state that is false in one more number, so that the step is always worth a game.

    Some values do not reach the state: a NaN branch not taken, a digit that rounding drops.
    """

    def __init__(self, perturbation: Perturbation) -> None:
        task = subject()
        end = Perturbation(*producer_of_output(task.program.program, 0), 0, one_ulp, WRONG_STEP, WRONG_STEP)
        self._states = PerturbedExecutor(task.program, task.fixed, {}, [end])
        self._traces = PerturbedExecutor(task.program, task.fixed, {}, [perturbation])

    def step(self, state: State, number: int, /) -> State:
        """The state after the step."""
        return self._states.step(state, number)

    def trace(self, state: State, number: int, /) -> Frame:
        """The step with all its values."""
        return self._traces.trace(state, number)


def sites() -> list[tuple[Path, int]]:
    """Call path and number of every primitive of the step, callees before what follows them."""
    found: list[tuple[Path, int]] = []

    def visit(program: Program, path: Path) -> None:
        for number, instruction in enumerate(program.instructions):
            if instruction.op is Op.CALL:
                visit(program.callee(number), (*path, number))
            elif instruction.op is not Op.OUTPUT:
                found.append((path, number))

    visit(subject().program.program, ())
    return found


def wrong_run(path: Path, number: int) -> tuple[Replay, int] | None:
    """A run that is false in one element of this instruction, and which; None if no change of it leaves its callee."""
    task = subject()
    program = task.program.program
    for n in path:
        program = program.callee(n)
    elements = program.instructions[number].result.elements
    true = honest().frame(2, 1)
    for element in dict.fromkeys((elements // 2, 0, elements - 1)):
        for flip in (1, 0x4000_0000):
            change = Perturbation(path, number, element, flip.__xor__, WRONG_STEP, WRONG_STEP)
            run = replay(task, FalseState(change))
            if not path or run.frame(2, 1).root(_call_leaf(path)) != true.root(_call_leaf(path)):
                return run, element
    return None


def _call_leaf(path: Path) -> int:
    return subject().program.program.instructions[path[0]].first


def play(chain: Arena, run: Replay, *, silent: bool = False) -> Ended:
    """Submit the run and challenge it at its first wrong segment."""
    (task,) = chain.submitted(subject(), [run])
    pairs = zip(run.segment_roots() or (), honest().segment_roots() or (), strict=True)
    segment = next(i for i, (claimed, own) in enumerate(pairs) if claimed != own)
    words = Silent() if silent else Serving(run)
    return chain.play(task, subject(), run, honest(), words, None if silent else segment, covers_up)


def test_every_kind_of_value_is_found_and_judged(chain: Arena) -> None:
    everywhere = sites()
    check_corruptions(chain, everywhere[:: len(everywhere) // SAMPLE])


@pytest.mark.heavy
@pytest.mark.timeout(3_000)
def test_every_value_is_found_and_judged(chain: Arena) -> None:
    check_corruptions(chain, sites())


def check_corruptions(chain: Arena, chosen: list[tuple[Path, int]]) -> None:
    """Each of the corruptions is judged at its own instruction and element."""
    without_effect = 0
    for path, number in chosen:
        made = wrong_run(path, number)
        if made is None:
            without_effect += 1
            continue
        run, element = made
        ended = play(chain, run)
        assert ended.verdict is Verdict.SOLVER_FALSE
        assert (ended.view.path, ended.judged["n"]) == (path, number)
        if "element" in ended.judged:  # an input is judged as an edge: its root, not an element
            assert ended.judged["element"] == element
            assert ended.judged["claimed"] != ended.judged["computed"]
        assert max(ended.gas) < 1_000_000
        assert len(ended.gas) <= 14
        assert sum(ended.gas) < 4_000_000
    assert without_effect <= len(chosen) // 4


def test_a_skipped_segment_ends_at_an_output(chain: Arena) -> None:
    task = subject()
    run = replay(task, SkippingExecutor(task.program, task.fixed, {}, 3, 4))
    ended = play(chain, run)
    assert ended.verdict is Verdict.SOLVER_FALSE
    assert ended.moves[-1] == "judgeOutput"


@pytest.mark.parametrize(("op", "callee", "which"), [(Op.DOT, "linear", 1), (Op.EXPONENT, "linear", 2)])
def test_a_silent_solver_is_walked_down_by_demands(chain: Arena, op: Op, callee: str, which: int) -> None:
    path, number = find(subject().program.program, op, callee, which)
    made = wrong_run(path, number)
    assert made is not None
    run, element = made
    ended = play(chain, run, silent=True)
    assert ended.verdict is Verdict.SOLVER_FALSE
    assert (ended.view.path, ended.judged["n"], ended.judged["element"]) == (path, number, element)
    assert ended.moves.count("demand") == ended.moves.count("revealNode") + ended.moves.count("revealLeaf")
    assert ended.moves.count("demand") >= 6


def test_a_solver_that_answers_nothing_at_all_loses_on_the_clock(chain: Arena) -> None:
    task = subject()
    wrong = Perturbation(*producer_of_output(task.program.program, 0), 0, one_ulp, WRONG_STEP, WRONG_STEP)
    run = replay(task, PerturbedExecutor(task.program, task.fixed, {}, [wrong]))
    (number,) = chain.submitted(task, [run])
    ended = chain.play(number, task, run, honest(), Silent(), None, lambda _view, _run: None)
    assert ended.verdict is Verdict.SOLVER_SILENT


def test_a_false_accuser_finds_no_move_that_wins(chain: Arena) -> None:
    task = subject()
    wrong = Perturbation(*producer_of_output(task.program.program, 0), 0, one_ulp, WRONG_STEP, WRONG_STEP)
    accuser = replay(task, PerturbedExecutor(task.program, task.fixed, {}, [wrong]))
    (number,) = chain.submitted(task, [honest()])
    bond = chain.submitter.deployment.parameters.challenge_bond
    before = chain.challenger.vault.free(chain.challenger.address)
    with pytest.raises((Reverted, NothingToChallenge)):
        chain.play(number, task, honest(), accuser, Serving(honest()), 2)
    game = chain.challenger.game.games()
    chain.devnet.skip(1_000)
    chain.solver.game.time_out(game)
    assert chain.challenger.game.game(game).verdict is Verdict.CHALLENGER_SILENT
    assert chain.challenger.vault.free(chain.challenger.address) == before - bond
