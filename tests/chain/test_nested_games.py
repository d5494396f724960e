"""Games through nested calls, up to the maximum depth of a program: see "Gas" in contracts/README.md."""

from __future__ import annotations

from functools import cache

import pytest
import torch

from protocol.dispute.view import Verdict
from protocol.numerics.types import DType
from protocol.program import Builder, Op, Program, StepProgram, TensorType
from protocol.program.check import MAX_CALL_DEPTH
from tests.adversaries.perturbing import Perturbation, one_ulp
from tests.chain.arena import Arena, Ended, Subject, replay
from tests.chain.corruption import JUDGE_GAS, SEGMENTS, STEPS, WRONG_STEP, Corruptions, FalseState, Site

pytestmark = pytest.mark.chain

X = TensorType(DType.F32, (3, 200))
ELEMENT = 517
"""An element in the last of the value's three chunks."""
ENTRY, LEVEL = 6, 2
"""Numbers of transactions in a game with served data. A game has `ENTRY` transactions for the moves commit,
challenge, steps, step, trace and judgment. For each call that it descends into, it has `LEVEL` more, for the
moves call and trace.
"""
LEVEL_GAS = 200_000


def level(depth: int) -> Program:
    """The program x + x^2 at depth 0; at a greater depth, x plus the result of `level(depth - 1)`."""
    b = Builder(f"level{depth}")
    x = b.input(X)
    inner = b.mul(x, x) if depth == 0 else b.call(level(depth - 1), x)[0]
    b.output(b.add(x, inner))
    return b.build()


@cache
def made(depth: int) -> Corruptions:
    """Corruptions of a step whose innermost primitive is `depth` calls below the top frame."""
    b = Builder("top")
    x, shift = b.input(X), b.input(X)
    b.output(b.minimum(b.call(level(depth - 1), x)[0], shift))
    program = StepProgram(b.build(), ("x",), datasets=1, constants=0)
    program.check()
    draw = torch.Generator().manual_seed(depth)
    state = {"x": torch.rand(X.shape, generator=draw)}
    return Corruptions(Subject(program, (torch.full(X.shape, 1e9),), state, SEGMENTS, STEPS), {})


def innermost(depth: int) -> Site:
    """The site of the only multiplication."""
    found = made(depth)
    (site,) = ((path, n) for path, n in found.sites if found.program(path).instructions[n].op is Op.MUL)
    return site


def ended(arena: Arena, depth: int, *, silent: bool) -> Ended:
    """Play a game over a run with one wrong product, and check that the game is judged at that product."""
    site = innermost(depth)
    assert len(site[0]) == depth
    found = made(depth).wrong_run(site, lambda _: [ELEMENT])
    assert found is not None
    game = made(depth).play(arena, found[0], silent=silent)
    assert game.verdict is Verdict.SOLVER_FALSE
    assert (game.view.path, game.judged["n"], game.judged["element"]) == (*site, ELEMENT)
    assert game.gas[-1] < JUDGE_GAS
    return game


def test_served_games_end_at_the_innermost_primitive_of_every_depth(arena: Arena) -> None:
    games = [ended(arena, depth, silent=False) for depth in range(1, MAX_CALL_DEPTH + 1)]
    gas = [sum(game.gas) for game in games]
    for depth, game in enumerate(games, start=1):
        print(f"depth {depth}: {len(game.gas)} transactions, {gas[depth - 1]:,} gas, judge {game.gas[-1]:,}")
        assert len(game.gas) == ENTRY + LEVEL * depth
    assert all(0 < deeper - gas[k] < LEVEL_GAS for k, deeper in enumerate(gas[1:]))


@pytest.mark.parametrize("silent", [False, True])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_claimed_result_of_a_call_is_judged_by_the_callees_output(
    arena: Arena, depth: int, silent: bool
) -> None:
    """The caller's trace has a wrong result of the call; the callee's trace is right."""
    found, (path, _) = made(depth), innermost(depth)
    change = Perturbation(path[:-1], path[-1], ELEMENT, one_ulp, WRONG_STEP, WRONG_STEP)
    run = replay(found.subject, FalseState(found.subject, {}, change))
    game = found.play(arena, run, silent=silent)
    assert game.verdict is Verdict.SOLVER_FALSE
    assert (game.view.path, game.moves[-1]) == (path, "judgeOutput")


@pytest.mark.parametrize("depth", [2, 4])
def test_silent_solvers_are_walked_down_through_the_calls(arena: Arena, depth: int) -> None:
    game = ended(arena, depth, silent=True)
    print(f"depth {depth}, silent: {len(game.gas)} transactions, {sum(game.gas):,} gas")
    demands = game.moves.count("demand")
    assert demands == game.moves.count("revealNode") + game.moves.count("revealLeaf")
    # In every frame the first differing value, and at the end the chunk with the element.
    assert demands >= depth + 2
    assert game.moves.count("selectCall") == depth
