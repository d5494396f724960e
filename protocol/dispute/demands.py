"""The demand move: the solver must reveal a node of one of its trees on-chain, or lose when its time runs out.

dispute.md section 6.
"""

from __future__ import annotations

from protocol.commitments import CHUNK
from protocol.dispute.moves import Move
from protocol.dispute.openings import NO_INSTRUCTION, NO_LEAF, InstructionOpening, Leaf, Node
from protocol.dispute.partial_tree import PartialTree
from protocol.dispute.view import GameView, TreeKind


def demand(
    game: GameView,
    kind: TreeKind,
    tree: PartialTree,
    node: tuple[int, int],
    instruction: InstructionOpening = NO_INSTRUCTION,
    value: Leaf = NO_LEAF,
    bytes_total: int = 0,
) -> Move:
    """Demand the descendants of a node, or the bytes of a leaf.

    For a VALUE tree, `instruction` and `value` open the value, which has `bytes_total` bytes. For a TRACE
    tree only `instruction.program` is needed.
    """
    lo, size = node
    opening = Node(lo, size, tree.hash(node), tree.path(lo, size))
    leaf = min(CHUNK, bytes_total - CHUNK * lo) if kind is TreeKind.VALUE else 32
    return Move(
        "demand",
        (game.game, game.head, int(kind), (instruction, value), game.before, game.after, [opening]),
        f"demand {kind.name.lower()} tree, leaves {lo} to {lo + size - 1}",
        (leaf if size == 1 else 0,),
    )
