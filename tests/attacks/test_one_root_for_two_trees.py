"""A solver that posts the root of its step tree (or of the caller's trace) as the root of a trace or of a value
too.

The solver chooses the 32 bytes of a claim, so nothing on-chain forbids this. Nobody can open such a trace or
value, so the solver loses. But the challenger must not confuse the two trees: it must not demand nodes that the
trace does not have, and must not take the 32 bytes of a trace's leaf for a chunk of the value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from types import SimpleNamespace
from typing import cast

import pytest
import torch

from protocol.chain.views import TaskStatus
from protocol.commitments import Tree, step_tree, trace_tree
from protocol.commitments.hashing import BytesLike
from protocol.dispute import challenger, defender
from protocol.dispute.in_process import Silent
from protocol.dispute.moves import Move
from protocol.dispute.provider import Frame, Provider, Run, frame_at
from protocol.dispute.revealed import Revealed
from protocol.dispute.view import DemandedNode, GameView, Phase, TreeKind, Verdict
from protocol.execution.replay import HonestExecutor
from protocol.numerics.types import DType
from protocol.program import Builder, Op, Program, StepProgram, TensorType
from protocol.program.execute import Interpreter
from protocol.program.trace import trace
from tests.adversaries.perturbing import Perturbation, PerturbedExecutor, doubled, find
from tests.attacks.purses import SLASHED, Purses
from tests.attacks.ring import refused
from tests.chain.arena import Arena, Subject, replay


def roots(what: str, count: int) -> list[bytes]:
    return [sha256(f"{what} {k}".encode()).digest() for k in range(count)]


OWN_STEPS = step_tree(roots("own step", 5))
CLAIMED_STEPS = roots("claimed step", 5)
CLAIMED = step_tree(CLAIMED_STEPS)


def test_a_trace_with_the_step_tree_s_root_is_a_tree_of_its_own() -> None:
    revealed = Revealed()
    assert revealed.tree(CLAIMED.root, OWN_STEPS, lambda: CLAIMED_STEPS).first_difference() == (0, 1)
    asked: list[int] = []
    trace = revealed.tree(CLAIMED.root, trace_tree(roots("value", 7)), lambda: asked.append(7))
    assert asked == [7]
    assert trace.size == 7
    assert trace.first_difference() == (0, 7)


def test_what_was_revealed_of_one_tree_is_not_taken_for_the_other() -> None:
    revealed = Revealed()
    revealed.reveal(CLAIMED.root, 5, DemandedNode(0, 5, CLAIMED.root), CLAIMED.descendants(0, 5))
    assert revealed.tree(CLAIMED.root, trace_tree(roots("value", 7))).first_difference() == (0, 7)
    assert revealed.tree(CLAIMED.root, OWN_STEPS).first_difference() == (0, 1)


def test_equal_sizes_are_compared_with_their_own_values() -> None:
    """The root of a step tree is also posted as the root of a trace; both trees have five leaves."""
    revealed = Revealed()
    own = [*CLAIMED_STEPS[:3], *roots("callee", 2)]
    assert revealed.tree(CLAIMED.root, OWN_STEPS, lambda: CLAIMED_STEPS).first_difference() == (0, 1)
    assert revealed.tree(CLAIMED.root, trace_tree(own), lambda: CLAIMED_STEPS).first_difference() == (3, 1)


ROW = TensorType(DType.F32, (640,))
"""Values of three chunks; the trace below has three leaves."""


def wide() -> Program:
    """Outputs a row of twos, without any input."""
    b = Builder("wide")
    ones = b.expand(b.f32(0x3F800000), ROW.shape)
    b.output(b.add(ones, ones))
    return b.build()


def top() -> Program:
    """Begins with a call, so leaf 0 of its trace is the call's result."""
    b = Builder("top")
    (twos,) = b.call(wide())
    b.output(b.add(twos, b.input(ROW)))
    return b.build()


class Served:
    """Serves the trace of the callee, and nothing else."""

    def __init__(self, callee: Sequence[bytes]) -> None:
        self._callee = callee

    def trace_roots(self, _segment: int, _step: int, path: tuple[int, ...]) -> Sequence[bytes] | None:
        return self._callee if path else None

    def value(self, *_at: object) -> None:
        """No value."""


def reveal(revealed: Revealed, tree: Tree, bytes_total: int) -> None:
    """Reveal the nodes below the root of a tree of three leaves."""
    node = DemandedNode(0, tree.size, tree.root)
    revealed.reveal(tree.root, tree.size, node, tree.descendants(0, tree.size), bytes_total)


def test_a_revealed_leaf_of_a_trace_is_no_chunk_of_a_value_with_the_same_root() -> None:
    """The claimed value has as many chunks as the caller's trace has leaves, and its root is the caller's trace
    root, of which leaf 0 was revealed on-chain. The challenger demands the chunk of 1,024 bytes, which nobody can
    show. A judgment with the leaf's 32 bytes would revert, and the challenger would lose on its clock.
    """
    frame: Frame = trace(top(), [torch.ones(ROW.shape)])
    callee = frame.callee(0)
    false = trace_tree([sha256(b"false result").digest(), frame.root(1), frame.root(2)])
    leaves = [callee.root(0), callee.root(1), false.root]
    revealed, served = Revealed(), cast(Provider, Served(leaves))
    reveal(revealed, false, 0)
    leaf = DemandedNode(0, 1, false.node(0, 1))
    revealed.reveal(false.root, 3, leaf, sha256(b"false result").digest())
    game = GameView(
        *(7, 1, "0x" + "11" * 20, Phase.FRAME, bytes(32), bytes(32), 9),
        segment=1,
        step=1,
        path=(0,),
        frame_keys=(bytes(32), bytes(32)),
        frame_roots=(false.root, trace_tree(leaves).root),
    )
    run = cast(Run, SimpleNamespace(frame=lambda _segment, _step: frame))
    for answers in ((0,), (1024,)):
        move = challenger.next_move(game, run, revealed, served)
        assert move is not None
        assert (move.function, move.arguments[2], move.answers) == ("demand", TreeKind.VALUE, answers)
        reveal(revealed, false, 640 * 4)


def stepping() -> Subject:
    """A step that calls `top`. For each element, it outputs the smaller one of the call's result and the
    dataset's row. The initial state is a row of zeros.
    """
    b = Builder("stepping")
    x, limit = b.input(ROW), b.input(ROW)
    b.output(b.minimum(b.call(top(), x)[0], limit))
    program = StepProgram(b.build(), ("x",), datasets=1, constants=0)
    program.check()
    return Subject(program, (torch.full(ROW.shape, 1e9),), {"x": torch.zeros(ROW.shape)}, 1, 2)


class Forged:
    """A frame whose last value, a false one, is claimed to have `root`."""

    def __init__(self, frame: Frame, root: bytes) -> None:
        self._frame = frame
        self._roots = [*(frame.root(leaf) for leaf in range(frame.tree.size - 1)), root]

    @property
    def program(self) -> Program:
        """The program that ran."""
        return self._frame.program

    @property
    def tree(self) -> Tree:
        """The trace tree over the claimed roots."""
        return trace_tree(self._roots)

    def root(self, leaf: int) -> bytes:
        """The claimed root of a value."""
        return self._roots[leaf]

    def value(self, leaf: int) -> BytesLike:
        """Bytes of a value of the frame itself."""
        return self._frame.value(leaf)

    def callee(self, n: int) -> Frame:
        """A callee of the frame itself."""
        return self._frame.callee(n)


@pytest.mark.chain
def test_a_solver_that_posts_a_traces_root_as_a_values_root_is_slashed(ring: Arena) -> None:
    """The solver serves nothing, so all that the challenger knows was revealed on-chain. In `wide`, it claims
    the trace root of `top` for the false row, and answers demands for the row with nodes of that trace. The
    chain accepts inner nodes, but not the 32 bytes of a leaf for a chunk of 1,024 bytes.
    """
    subject = stepping()
    path, number = find(subject.program.program, Op.ADD, "wide")
    wrong = Perturbation(path, number, 0, doubled, last=1)
    run = replay(subject, PerturbedExecutor(subject.program, subject.fixed, {}, [wrong]))
    honest = replay(subject, HonestExecutor(subject.program, subject.fixed, Interpreter({})))
    errors: list[str] = []

    def posts_the_root_twice(view: GameView, own: Run) -> Move | None:
        if view.path != path:
            return defender.next_move(view, own)
        caller = frame_at(own, view.segment, view.step, path[:-1])
        frame: Frame = Forged(caller.callee(path[-1]), caller.tree.root)
        if view.demand is not None and view.demand.tree is TreeKind.VALUE:
            assert view.demand.root == caller.tree.root
            frame, view = caller, replace(view, demand=view.demand._replace(tree=TreeKind.TRACE))
        only = cast(Run, SimpleNamespace(frame=lambda _segment, _step: frame))
        move = defender.next_move(replace(view, path=()), only)
        if frame is caller and move is not None and move.function == "revealLeaf":
            errors.append(refused(lambda: ring.solver.game.send_move(move, view.head)))
            return None
        return move

    before = Purses.of(ring)
    (task,) = ring.submitted(subject, [run])
    ended = ring.play(task, subject, run, honest, Silent(), 1, posts_the_root_twice)
    ring.ready()
    assert (ended.view.path, ended.moves[-3:]) == (path, ["demand", "revealNode", "demand"])
    assert (ended.verdict, errors) == (Verdict.SOLVER_SILENT, ["WrongLength"])
    assert ring.submitter.market.task(task).status is TaskStatus.SLASHED
    assert Purses.of(ring) - before == SLASHED
