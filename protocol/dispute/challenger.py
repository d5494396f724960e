"""The challenger's side: it narrows the difference between two runs down to one wrong number (dispute.md
sections 4 to 6).

`next_move` depends on the game, on the challenger's own run, and on the parts of the solver's trees that are
already known or that the solver serves. Nodes that the solver does not serve are demanded on-chain.
"""

from __future__ import annotations

from protocol.commitments import CHUNK, ProofError, segment_tree, state_tree, step_tree, tensor_tree
from protocol.dispute.demands import demand
from protocol.dispute.errors import NothingToChallenge
from protocol.dispute.evidence import compare_value, edge_input, edge_output
from protocol.dispute.moves import Move
from protocol.dispute.openings import Leaf, open_instruction, open_program
from protocol.dispute.partial_tree import PartialTree
from protocol.dispute.provider import Frame, Provider, Run, frame_at
from protocol.dispute.revealed import Revealed
from protocol.dispute.splitting import answer_split
from protocol.dispute.view import GameView, Phase, TreeKind
from protocol.program.opcodes import Op


def next_move(game: GameView, run: Run, revealed: Revealed, provider: Provider) -> Move | None:
    """The challenger's next move. None if it is the solver's turn or the game is over.

    Raises NothingToChallenge if the two runs do not differ in the part that the game has reached. Also raises
    it if the game has no segment yet, and `run` lacks checkpoints that must be compared.
    """
    if game.phase in (Phase.NONE, Phase.CLOSED) or game.solver_to_move:
        return None
    return _Challenger(game, run, revealed, provider).move()


class _Challenger:
    """Computes one move of one game from the arguments of `next_move`."""

    def __init__(self, game: GameView, run: Run, revealed: Revealed, provider: Provider) -> None:
        self.game, self.run, self.revealed, self.provider = game, run, revealed, provider

    def move(self) -> Move:
        """The move that the game's phase asks for."""
        if self.game.phase is Phase.SEGMENT:
            return self.select_segment()
        if self.game.phase is Phase.STEP:
            return self.select_step()
        if self.game.phase is Phase.BLOCK:
            return answer_split(self.game, self.frame(self.game.path), self.trace(self.game.path))
        return self.in_frame()

    def frame(self, path: tuple[int, ...]) -> Frame:
        """The frame at `path` in our own run."""
        return frame_at(self.run, self.game.segment, self.game.step, path)

    def trace(self, path: tuple[int, ...]) -> PartialTree:
        """The solver's trace of the frame at `path`.

        A served trace is kept, because it is still needed when it can no longer be demanded. The challenger
        can demand a trace only until it selects an element or a call in it. After that, moves in phase BLOCK
        and at the edges of a callee still need paths in the trace. Other trees are not kept, because they are
        needed only in the phase in which they can be demanded.
        """
        root = self.game.frame_roots[len(path)]
        assert root is not None
        segment, step, ask = self.game.segment, self.game.step, self.provider.trace_roots
        return self.revealed.tree(root, self.frame(path).tree, lambda: ask(segment, step, path), keep=True)

    def select_segment(self) -> Move:
        """Select the segment that ends in the first checkpoint that differs from our own, or demand a node
        on the way to it.
        """
        game = self.game
        roots = self.run.segment_roots()
        if roots is None or len(roots) < game.segment_size:
            raise NothingToChallenge("a game without a segment needs our own run from the initial state on")
        own = segment_tree(list(roots[: game.segment_size]))
        tree = self.revealed.tree(game.segment_root, own, self.provider.segment_roots)
        segment, after = _first_difference(tree, "the checkpoints")
        if after is None:
            return demand(game, TreeKind.SEGMENT, tree, segment)
        i = segment[0]
        before = Leaf(roots[i - 1], tree.path(i - 1))
        return Move(
            "selectSegment", (game.game, game.head, i, before, Leaf(after, tree.path(i))), f"segment {i}"
        )

    def select_step(self) -> Move:
        """In the segment, select the first step after which the solver's state differs from our own, or
        demand a node on the way to this step.
        """
        game = self.game
        assert game.steps_root is not None
        roots = list(self.run.step_roots(game.segment))
        tree = self.revealed.tree(
            game.steps_root, step_tree(roots), lambda: self.provider.step_roots(game.segment)
        )
        node, after = _first_difference(tree, f"the steps of segment {game.segment}")
        if after is None:
            return demand(game, TreeKind.STEP, tree, node)
        j = node[0]
        before = Leaf(roots[j - 1], tree.path(j - 1))
        return Move("selectStep", (game.game, game.head, j, before, Leaf(after, tree.path(j))), f"step {j}")

    def in_frame(self) -> Move:
        """Find the first differing value of the frame, or demand a node on the way to it. If a call made the
        value, descend into that call. If an input or a primitive made it, the move is that of `edge_input` or
        `compare_value`. If no value differs, the move is that of `false_output`.
        """
        game = self.game
        frame, trace = self.frame(game.path), self.trace(game.path)
        if trace.first_difference() is None:
            return self.false_output(frame, trace)
        node, claimed = _first_difference(trace, "the trace")
        if claimed is None:
            return demand(game, TreeKind.TRACE, trace, node, open_program(frame.program))
        leaf = node[0]
        value = Leaf(claimed, trace.path(leaf))
        n = frame.program.producer(leaf)
        instruction = frame.program.instructions[n]
        opened = open_instruction(frame.program, n)
        if instruction.op is Op.CALL:
            return Move("selectCall", (game.game, game.head, opened), f"call {n}")
        if instruction.op is Op.INPUT:
            caller = None
            if game.path:
                outer = self.frame(game.path[:-1])
                call = outer.program.instructions[game.path[-1]]
                caller = call, outer, self.trace(game.path[:-1])
            return edge_input(game, self.run, n, opened, instruction, value, caller)
        segment, step, path, ask = game.segment, game.step, game.path, self.provider.value
        return compare_value(
            game,
            frame,
            trace,
            n,
            value,
            lambda own: self.revealed.tree(
                claimed,
                tensor_tree(own),
                lambda: _chunks(ask(segment, step, path, leaf)),
                bytes_total=len(own),
            ),
        )

    def false_output(self, frame: Frame, trace: PartialTree) -> Move:
        """The move if all values of the frame agree. Then one of the frame's outputs was claimed wrongly, in
        the caller's trace or in the state after the step. If the first wrong output in the state is not known
        yet, the move demands a node on the way to it.
        """
        game = self.game
        if game.path:
            caller = self.trace(game.path[:-1])
            call = self.frame(game.path[:-1]).program.instructions[game.path[-1]]
            node, claimed = _first_difference(caller, "the caller's trace")
            if claimed is None:
                raise ProofError(
                    "the caller's trace",
                    expected="leaves that were kept or revealed",
                    got="neither",
                    remedy="restore the task's folder from a backup",
                )
            leaf = node[0]
            target = Leaf(claimed, caller.path(leaf))
            return edge_output(game, frame, trace, leaf - call.first, target, call.encode())
        tensors = list(self.run.tensor_roots(game.segment, game.step))
        state = self.revealed.tree(
            game.after, state_tree(tensors), lambda: self.provider.tensor_roots(game.segment, game.step)
        )
        node, claimed = _first_difference(state, f"the state after step {game.step}")
        if claimed is None:
            return demand(game, TreeKind.STATE, state, node)
        k = node[0]
        return edge_output(game, frame, trace, k, Leaf(claimed, state.path(k)), b"")


def _first_difference(tree: PartialTree, what: str) -> tuple[tuple[int, int], bytes | None]:
    """The first differing node, and its data if the node is a leaf whose data is known. Otherwise the data is
    None, and the caller has to demand the node. Raises NothingToChallenge if the trees are equal.
    """
    node = tree.first_difference()
    if node is None:
        raise NothingToChallenge(f"{what} equal our own")
    return node, tree.data(node[0]) if node[1] == 1 else None


def _chunks(value: bytes | None) -> list[bytes] | None:
    if not value:
        return None
    return [value[at : at + CHUNK] for at in range(0, len(value), CHUNK)]
