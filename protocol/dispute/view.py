"""A party's view of a game: the contract's state and the data from its events (IDisputeGame.sol)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple


class Phase(IntEnum):
    """The phase of a game."""

    NONE = 0
    SEGMENT = 1
    STEP = 2
    FRAME = 3
    SPLIT = 4
    BLOCK = 5
    CLOSED = 6


class TreeKind(IntEnum):
    """The kind of tree that a demand is about."""

    SEGMENT = 0
    STEP = 1
    TRACE = 2
    STATE = 3
    VALUE = 4


class Verdict(IntEnum):
    """The outcome of a game; NONE while it lasts."""

    NONE = 0
    SOLVER_FALSE = 1
    SOLVER_SILENT = 2
    CHALLENGER_SILENT = 3
    MOOT = 4
    DROPPED = 5
    """The challenger, a looker, ended the game to accuse a seat instead."""


class DemandedNode(NamedTuple):
    """A node that the solver has to reveal."""

    lo: int
    size: int
    hash: bytes


class Demand(NamedTuple):
    """An open demand for nodes of one of the game's trees. `unanswered` holds the indices of the nodes that
    are still due.
    """

    tree: TreeKind
    root: bytes
    tree_size: int
    bytes_total: int
    nodes: tuple[DemandedNode, ...]
    unanswered: tuple[int, ...]


class Selection(NamedTuple):
    """The blocks that are selected in a split reduction: the blocks [lo, hi) of the element with index
    `element`. The solver claims that they fold to `word`. The fields are in ABI order.

    If `top` is true, the blocks are the whole row, and `word` holds the bits of the claimed element. `words`
    is zero if it is the solver's turn. Otherwise it is keccak256 of the words that the solver stated, packed
    as `abi.encode(uint64[])`.
    """

    instruction: bytes
    element: int
    lo: int
    hi: int
    word: int
    top: bool
    words: bytes


@dataclass(frozen=True, slots=True)
class GameView:
    """One game at one block.

    `path` holds the call instructions selected so far. `frame_keys` are the keys of the claims of the top
    frame and of each callee on the path. `frame_roots` holds the trace root of each of these claims, or None
    until the root is posted. `claim_root` is the root that the solver posted for the current claim, or None
    if it has posted none. In phase STEP, this is the root of the step tree. From phase FRAME on, it is the
    trace root of the current frame.
    """

    game: int
    task: int
    challenger: str
    phase: Phase
    head: bytes
    segment_root: bytes
    segment_size: int
    segment: int = 0
    step: int = 0
    before: bytes = bytes(32)
    after: bytes = bytes(32)
    path: tuple[int, ...] = ()
    steps_root: bytes | None = None
    frame_keys: tuple[bytes, ...] = ()
    frame_roots: tuple[bytes | None, ...] = ()
    demand: Demand | None = None
    instruction: int = 0
    selection: Selection | None = None
    words: tuple[int, ...] = field(default=())
    verdict: Verdict = Verdict.NONE

    @property
    def claim_root(self) -> bytes | None:
        """The root posted for the current claim; None until it is posted."""
        if self.phase is Phase.STEP:
            return self.steps_root
        return self.frame_roots[-1] if self.frame_roots else None

    @property
    def solver_to_move(self) -> bool:
        """Whether it is the solver's turn: it owes a claim, a reveal or block results."""
        if self.demand is not None or self.phase is Phase.SPLIT:
            return True
        return self.phase in (Phase.STEP, Phase.FRAME) and self.claim_root is None
