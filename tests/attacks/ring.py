"""The task of the attacks (digits, 3 segments of 2 steps), runs that are false in chosen ways, and games.

Runs are really trained and traced, except those of `claiming`, which only name checkpoints.
`tests.chain.arena` plays the games on the real contracts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import torch

from examples import digits
from protocol.chain.client import Client
from protocol.chain.errors import Reverted
from protocol.chain.parameters import TOKEN
from protocol.chain.views import TaskStatus
from protocol.commitments import ProgressTree
from protocol.dispute import defender
from protocol.dispute.errors import NothingToReveal
from protocol.dispute.in_process import Serving, Silent
from protocol.dispute.moves import Move
from protocol.dispute.provider import Run
from protocol.dispute.view import GameView
from protocol.execution.replay import HonestExecutor, Replay
from protocol.program.execute import Interpreter
from protocol.program.library import kernels
from tests.adversaries.perturbing import Perturbation, PerturbedExecutor, one_ulp, producer_of_output
from tests.attacks.purses import Purses
from tests.chain.arena import Arena, Ended, Subject, replay, terms
from tests.chain.rounds import draw_first

SEGMENTS, STEPS = 3, 2
WRONG_STEP = 3
"""The wrong step's number in the whole run, counted from 1: it is step 1 of segment 2."""

Defence = Callable[[GameView, Run], Move | None]


@cache
def subject() -> Subject:
    """The digits task with fewer steps: `SEGMENTS` segments of `STEPS` steps."""
    torch.set_num_threads(1)
    captured = digits.build(SEGMENTS * STEPS)
    return Subject(captured.step_program, captured.fixed, captured.initial_state(1), SEGMENTS, STEPS)


@cache
def honest() -> Replay:
    """The honest run."""
    task = subject()
    interpreter = Interpreter(kernels(task.program.program, digits.build(SEGMENTS * STEPS).hints))
    return replay(task, HonestExecutor(task.program, task.fixed, interpreter))


def perturbed(*wrong: Perturbation) -> Replay:
    """A run that is honest except for these perturbations and what follows from them."""
    task = subject()
    return replay(task, PerturbedExecutor(task.program, task.fixed, {}, wrong))


def claiming(roots: Sequence[bytes]) -> Replay:
    """A run that claims these state roots for its checkpoints. Whatever the roots are, the run's state in
    every checkpoint is the initial state.
    """
    task = subject()
    executor = HonestExecutor(task.program, task.fixed, Interpreter({}))
    return Replay(task.program, task.fixed, executor, STEPS, lambda _number: task.initial, lambda: roots)


@cache
def one_ulp_off() -> Replay:
    """A run in which one weight is wrong by one unit in the last place in step `WRONG_STEP`."""
    path, number = producer_of_output(subject().program.program, 0)
    return perturbed(Perturbation(path, number, 0, one_ulp, WRONG_STEP, WRONG_STEP))


def roots_of(run: Run) -> list[bytes]:
    """State roots of the checkpoints, the initial state first."""
    roots = run.segment_roots()
    assert roots is not None
    return list(roots)


def first_false(run: Run) -> int:
    """The first segment whose final state differs from the honest run's."""
    return next(
        i
        for i, (mine, true) in enumerate(zip(roots_of(run), roots_of(honest()), strict=True))
        if mine != true
    )


def fights(
    arena: Arena,
    run: Run,
    *,
    provider: Silent | Serving | None = None,
    defence: Defence = defender.next_move,
    segment: int | None = None,
) -> tuple[Ended, TaskStatus, Purses]:
    """Submit a run and challenge it, by default at its first false segment.

    By default, `provider` serves the submitted run, and the solver defends the run by the rules. When the
    solver has nothing to reveal, it makes no move. Returns how the game ended, the task's status, and how the
    balances differ from those before the posting.
    """

    def answer(view: GameView, own: Run) -> Move | None:
        try:
            return defence(view, own)
        except NothingToReveal:
            return None

    before = Purses.of(arena)
    (task,) = arena.submitted(subject(), [run])
    at = first_false(run) if segment is None else segment
    ended = arena.play(task, subject(), run, honest(), provider or Serving(run), at, answer)
    arena.ready()
    return ended, arena.submitter.market.task(task).status, Purses.of(arena) - before


def assigned(arena: Arena, number: int) -> int:
    """Post a task and let the solver win it; returns the task's id. Each `number` gives the task a different
    bundle hash.
    """
    arena.ready()
    (task, _) = arena.submitter.market.post(terms(subject(), number))
    arena.solver.market.bid(task, 10 * TOKEN)
    arena.devnet.skip(30)
    arena.solver.market.assign(task)
    return task


def submitted(arena: Arena, task: int, run: Run) -> None:
    """Let the solver submit a run. If the solver has committed to checkpoints before, the submission proves
    that the run continues them.
    """
    roots = roots_of(run)
    tree, size = ProgressTree(roots), arena.solver.market.task(task).size
    head, last = tree.at(len(roots)), len(roots) - 1
    first, proof = (head.inclusion_path(0), []) if size == 0 else ([], tree.consistency_proof(size))
    arena.solver.market.submit(task, head.root, first, proof, roots[last], head.inclusion_path(last))


def progressed(arena: Arena, task: int, roots: Sequence[bytes]) -> ProgressTree:
    """Let the solver commit to its first checkpoints, which have these `roots`; returns the tree over them."""
    tree = ProgressTree(list(roots))
    head = tree.at(len(roots))
    arena.solver.market.progress(task, head.root, len(roots), head.inclusion_path(0), [])
    return tree


def audited(arena: Arena, task: int) -> int:
    """Let the challenger, the only verifier, execute the draws and attest; returns the number of seats."""
    audit = arena.challenger.audit
    while audit.audit(task).pending:
        draw_first(arena.challenger, arena.devnet)
    seats = audit.seats(task)
    for seat in seats:
        audit.attest(task, seat.number, roots_of(honest())[-1], bytes(32))
    return len(seats)


def refused(call: Callable[[], object]) -> str:
    """Make a call that must revert; returns the name of the contract's error."""
    try:
        call()
    except Reverted as error:
        return error.name
    raise AssertionError("the contract accepted it")


def emptied(client: Client, keep: int) -> int:
    """Withdraw all free tokens of an account except `keep`; returns how many it had before."""
    had = client.vault.free(client.address)
    client.vault.withdraw(had - keep)
    return had


def other_data() -> Subject:
    """The task of `subject` with the rows of its dataset rotated by one."""
    task = subject()
    return replace(task, fixed=tuple(x.roll(1, 0) if x.dim() else x for x in task.fixed))
