"""Whose turn it is in a game, by its phase and its demand, and how demands are answered."""

from __future__ import annotations

import gc
import tracemalloc
from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from protocol.commitments import step_tree, tensor_root, tensor_tree, trace_tree
from protocol.dispute import challenger, defender
from protocol.dispute.errors import NothingToReveal
from protocol.dispute.provider import Provider, Run
from protocol.dispute.revealed import Revealed
from protocol.dispute.view import Demand, DemandedNode, GameView, Phase, TreeKind

ROOTS = [bytes([number]) * 32 for number in range(1, 4)]
DEMAND = Demand(TreeKind.STEP, step_tree(ROOTS).root, 3, 0, (DemandedNode(0, 3, bytes(32)),), (0,))
GAME = GameView(7, 1, "0x" + "11" * 20, Phase.SEGMENT, bytes(32), bytes(32), 9)


class Steps:
    """A run that has only `step_roots`, the same for every segment. Any other attribute raises AttributeError."""

    def step_roots(self, _segment: int) -> list[bytes]:
        return ROOTS


RUN = cast(Run, Steps())
NOTHING = cast(Provider, object())


@pytest.mark.parametrize("phase", [Phase.NONE, Phase.CLOSED])
@pytest.mark.parametrize("demand", [None, DEMAND], ids=["no demand", "a demand"])
def test_nobody_moves_in_a_game_that_is_over(phase: Phase, demand: Demand | None) -> None:
    """This holds even if a demand was never answered."""
    game = replace(GAME, phase=phase, demand=demand)
    assert defender.moves(game, RUN) == ()
    assert defender.next_move(game, RUN) is None
    assert challenger.next_move(game, RUN, Revealed(), NOTHING) is None


def test_the_solver_owes_nothing_while_the_challenger_is_to_move() -> None:
    for game in (
        GAME,
        replace(GAME, phase=Phase.STEP, steps_root=bytes(32)),
        replace(GAME, phase=Phase.FRAME, frame_roots=(bytes(32),)),
        replace(GAME, phase=Phase.BLOCK),
    ):
        assert not game.solver_to_move
        assert defender.moves(game, RUN) == ()


@pytest.mark.parametrize("phase", [Phase.SEGMENT, Phase.STEP, Phase.FRAME, Phase.BLOCK])
def test_the_challenger_waits_until_its_demand_is_answered(phase: Phase) -> None:
    game = replace(GAME, phase=phase, steps_root=bytes(32), frame_roots=(bytes(32),), demand=DEMAND)
    assert challenger.next_move(game, RUN, Revealed(), NOTHING) is None
    assert [move.function for move in defender.moves(game, RUN)] == ["revealNode"]


def test_every_node_that_is_due_is_revealed_and_no_other() -> None:
    tree = step_tree(ROOTS)
    nodes = tuple(DemandedNode(lo, 1, tree.node(lo, 1)) for lo in range(3))
    moves = defender.moves(replace(GAME, demand=DEMAND._replace(nodes=nodes, unanswered=(0, 2))), RUN)
    assert [move.arguments[1] for move in moves] == [0, 2]
    assert [move.arguments[-1] for move in moves] == [ROOTS[0], ROOTS[2]]


def test_the_step_tree_is_posted_with_its_first_and_last_leaf() -> None:
    game = replace(GAME, phase=Phase.STEP, segment=4)
    (move,) = defender.moves(game, RUN)
    task, segment, root, first, last = move.arguments
    assert (move.function, task, segment, root) == ("expandSteps", 1, 4, step_tree(ROOTS).root)
    assert (first.value, last.value) == (ROOTS[0], ROOTS[2])


@pytest.mark.parametrize(
    "demand",
    [DEMAND._replace(root=step_tree(ROOTS[::-1]).root), DEMAND._replace(tree_size=4)],
    ids=["another root", "another size"],
)
def test_a_demand_about_a_tree_that_the_run_does_not_have_is_refused(demand: Demand) -> None:
    with pytest.raises(NothingToReveal, match="step tree: expected the own root"):
        defender.moves(replace(GAME, demand=demand), RUN)


VALUE_BYTES = (1 << 22) + 100


class OneValue:
    """Stands for a frame with one value, and also for a run that has this frame. Counts how often the value
    is read.
    """

    def __init__(self) -> None:
        self.bytes = np.resize(np.arange(251, dtype=np.uint8), VALUE_BYTES)
        self.tree = trace_tree([tensor_root(self.bytes.data)])
        self.times = 0

    def frame(self, _segment: int, _step: int) -> OneValue:
        return self

    def root(self, _leaf: int) -> bytes:
        return tensor_root(self.bytes.data)

    def value(self, _leaf: int) -> memoryview:
        self.times += 1
        return self.bytes.data

    def demands(self, *nodes: tuple[int, int]) -> list[object]:
        """What the solver reveals when these nodes of the value's tree are demanded."""
        tree = tensor_tree(self.bytes.data)
        named = tuple(DemandedNode(lo, size, tree.node(lo, size)) for lo, size in nodes)
        due = tuple(range(len(named)))
        demand = Demand(TreeKind.VALUE, tree.root, tree.size, VALUE_BYTES, named, due)
        game = replace(GAME, phase=Phase.FRAME, frame_roots=(self.tree.root,), demand=demand)
        return [move.arguments[-1] for move in defender.moves(game, cast(Run, self))]


def test_demanded_chunks_are_those_of_the_value() -> None:
    run, tree = OneValue(), tensor_tree(OneValue().bytes.data)
    last = tree.size - 1
    shown = run.demands((0, tree.size), (7, 1), (last, 1))
    data = run.bytes.tobytes()
    assert shown == [tree.descendants(0, tree.size), data[7 * 1024 : 8 * 1024], data[last * 1024 :]]
    assert len(data[last * 1024 :]) == 100


def test_a_demanded_value_is_not_copied() -> None:
    """The answer needs further memory only for the value's tree, which takes a sixteenth of the value's size."""
    run = OneValue()
    tracemalloc.start()
    try:
        run.demands((3, 1))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < VALUE_BYTES / 3


def test_the_tree_of_the_value_that_was_demanded_last_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = OneValue(), OneValue()
    first.demands((0, 4097))
    first.demands((0, 16), (16, 16))
    assert first.times == 1, "an inner node needs no value once the tree is there"
    second.demands((0, 4097))
    assert len(defender._last) == 1
    first.demands((0, 4097))
    assert (first.times, second.times) == (2, 1)
    del first
    gc.collect()
    assert not defender._last, "it goes with its frame"
    monkeypatch.setattr(defender, "KEPT_TREE", 64 * 4096)
    second.demands((0, 4097))
    assert not defender._last
