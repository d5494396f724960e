"""The solver's side (dispute.md section 6). From its own run, the solver posts the claims that are due,
reveals the demanded nodes, and posts the results of blocks.

Pure: `Run` replays the run. An honest run has an answer to every demand; if a run has none, `NothingToReveal`
is raised. The tree of the value that was demanded last is kept for the next demand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from weakref import WeakKeyDictionary

from protocol.commitments import Tree, chunk, segment_tree, state_tree, step_tree, tensor_tree
from protocol.dispute.errors import NothingToReveal
from protocol.dispute.moves import Move
from protocol.dispute.openings import open_leaf
from protocol.dispute.provider import Frame, Run, frame_at
from protocol.dispute.splitting import state_words
from protocol.dispute.view import Demand, GameView, Phase, TreeKind

KEPT_TREE = 256 << 20
"""Maximum size of a kept tree, in bytes. A tree has 64 bytes for each KiB of its value, so the tree of a
value of 4 GiB is still kept.
"""
TREE_BYTES_PER_LEAF = 64


def moves(game: GameView, run: Run) -> Sequence[Move]:
    """All moves that the solver owes, in any order; none if it is the challenger's turn or the game is over.

    Only a demand requires several moves: one for each node that is still to be revealed.
    """
    if game.phase in (Phase.NONE, Phase.CLOSED) or not game.solver_to_move:
        return ()
    if game.demand is not None:
        return reveals(game, game.demand, run)
    if game.phase is Phase.STEP:
        return (expand_steps(game, run),)
    if game.phase is Phase.SPLIT:
        return (state_words(game, frame_at(run, game.segment, game.step, game.path)),)
    return (expand_trace(game, run),)


def next_move(game: GameView, run: Run) -> Move | None:
    """The first of `moves`, or None."""
    return next(iter(moves(game, run)), None)


def expand_steps(game: GameView, run: Run) -> Move:
    """Post the root of the step tree of the game's segment. Open the tree's first and last leaves, which are
    the checkpoints before and after the segment.
    """
    roots = list(run.step_roots(game.segment))
    tree = step_tree(roots)
    last = len(roots) - 1
    return Move(
        "expandSteps",
        (
            game.task,
            game.segment,
            tree.root,
            open_leaf(tree, 0, roots[0]),
            open_leaf(tree, last, roots[last]),
        ),
        f"step tree of segment {game.segment}",
    )


def expand_trace(game: GameView, run: Run) -> Move:
    """Post the trace root of the frame that the game has reached."""
    frame = frame_at(run, game.segment, game.step, game.path)
    where = "/".join(map(str, game.path)) or "top"
    return Move(
        "expandTrace", (game.frame_keys[-1], frame.tree.root), f"trace of step {game.step}, frame {where}"
    )


def reveals(game: GameView, demand: Demand, run: Run) -> list[Move]:
    """Answer every unanswered node of a demand: an inner node with its descendants, and a leaf with its bytes."""
    tree, leaf = _demanded_tree(game, demand, run)
    return [_reveal(game, demand, index, tree, leaf) for index in demand.unanswered]


def _reveal(game: GameView, demand: Demand, index: int, tree: Tree, leaf: Callable[[int], bytes]) -> Move:
    node = demand.nodes[index]
    nodes = list(demand.nodes)
    if node.size == 1:
        return Move(
            "revealLeaf",
            (game.game, index, demand.bytes_total, nodes, leaf(node.lo)),
            f"{demand.tree.name.lower()} leaf {node.lo}",
        )
    return Move(
        "revealNode",
        (game.game, index, demand.bytes_total, nodes, tree.descendants(node.lo, node.size)),
        f"{demand.tree.name.lower()} node {node.lo}, {node.size} leaves",
    )


def _demanded_tree(game: GameView, demand: Demand, run: Run) -> tuple[Tree, Callable[[int], bytes]]:
    """The tree that a demand is about, and a function that returns the data of one leaf. A value is never
    copied as a whole, because it may be larger than memory. Raises NothingToReveal if our own run has another
    tree.
    """
    kind = demand.tree
    data: Callable[[int], bytes]
    if kind is TreeKind.SEGMENT:
        roots = list(run.segment_roots() or [])[: demand.tree_size]
        tree, data = segment_tree(roots), roots.__getitem__
    elif kind is TreeKind.STEP:
        roots = list(run.step_roots(game.segment))
        tree, data = step_tree(roots), roots.__getitem__
    elif kind is TreeKind.STATE:
        roots = list(run.tensor_roots(game.segment, game.step))
        tree, data = state_tree(roots), roots.__getitem__
    else:
        frame = frame_at(run, game.segment, game.step, game.path)
        roots = [frame.root(leaf) for leaf in range(frame.tree.size)]
        tree, data = frame.tree, roots.__getitem__
        if kind is TreeKind.VALUE and demand.root in roots:
            value = roots.index(demand.root)
            tree, data = _value_tree(frame, value), partial(_value_chunk, frame, value)
    if tree.root != demand.root or tree.size != demand.tree_size:
        raise NothingToReveal(
            f"{kind.name.lower()} tree: expected the own root {tree.root.hex()} of {tree.size} leaves, "
            f"got {demand.root.hex()} of {demand.tree_size}"
        )
    return tree, data


def _value_chunk(frame: Frame, leaf: int, index: int) -> bytes:
    return chunk(frame.value(leaf), index)


_last: WeakKeyDictionary[Frame, tuple[int, Tree]] = WeakKeyDictionary()
"""At most one entry, for the value that was demanded last. It maps the value's frame to the value's leaf and
tree, and disappears with the frame.
"""


def _value_tree(frame: Frame, leaf: int) -> Tree:
    """The tree of a value. If the kept tree is this value's, it is returned. Otherwise, the tree is built
    from the value, and is kept unless it is too large.
    """
    kept = _last.get(frame)
    if kept is not None and kept[0] == leaf:
        return kept[1]
    _last.clear()  # freed first, so that two are never in memory
    tree = tensor_tree(frame.value(leaf))
    if tree.size * TREE_BYTES_PER_LEAF <= KEPT_TREE:
        _last[frame] = leaf, tree
    return tree
