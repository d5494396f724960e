"""A game without a chain: the rules of the contracts in Python (dispute.md sections 4 to 6).

Every opening of a move is checked, and the last move is judged only from the chunks that it opens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from hashlib import sha256
from typing import Any

from eth_abi.abi import encode
from eth_utils.crypto import keccak

from protocol.commitments import (
    chunk_count,
    chunk_length,
    constants_tree,
    fold_descendants,
    leaf_hash,
    verify_inclusion,
    verify_path,
)
from protocol.dispute import challenger, defender
from protocol.dispute.keys import callee_key, trace_key
from protocol.dispute.moves import Move
from protocol.dispute.openings import ChunkOpening, InstructionOpening, Leaf, Node
from protocol.dispute.provider import Provider, Run
from protocol.dispute.revealed import LeafStore, Revealed
from protocol.dispute.splitting import parts
from protocol.dispute.view import Demand, DemandedNode, GameView, Phase, Selection, TreeKind, Verdict
from protocol.program.attributes import decode_index
from protocol.program.instruction import Instruction
from protocol.program.opcodes import Op
from protocol.program.program import Program, ProgramOpening
from tests.unit.dispute.judge import Judge, reduction

MAX_MOVES = 60
Defence = Callable[[GameView, Run], Move | None]


class Referee:
    """One blind game about a run of `program` with `steps` steps per segment. `solver` is the accused run,
    and `own` is the challenger's.
    """

    def __init__(self, program: Program, steps: int, solver: Run, own: Run) -> None:
        self.program, self.steps, self.solver, self.own = program, steps, solver, own
        self.constants = list(own.constant_roots())
        self.tensors = len(program.outputs)
        self.revealed = Revealed()
        self.kept: LeafStore | None = None
        """The challenger's disk. If it is set, the challenger restarts before each of its moves, and then
        knows only what the disk holds and what was revealed on-chain.
        """
        self.judged: tuple[int, int | None] = (-1, None)
        """The instruction and the element that were judged. The element is None at the edge of a frame."""
        self.demanded: list[TreeKind] = []
        self.notes: list[str] = []
        self._ends = b"", b""
        self._answers: list[tuple[Demand, DemandedNode, Sequence[bytes] | bytes]] = []

    def play(self, root: bytes, size: int, provider: Provider, defend: Defence) -> GameView:
        """Play a game about the segment tree with this root and size until the challenger has won. Return the
        last view.
        """
        self.view = GameView(7, 3, "0x" + "11" * 20, Phase.SEGMENT, bytes(32), root, size)
        for _ in range(MAX_MOVES):
            view = self.view
            if view.phase is Phase.CLOSED:
                return view
            if view.solver_to_move:
                move = defend(view, self.solver)
            else:
                self._restart()
                move = challenger.next_move(view, self.own, self.revealed, provider)
            assert move is not None
            self._play(move)
            self.notes.append(move.note)
        raise AssertionError(f"no end after {MAX_MOVES} moves")

    def _restart(self) -> None:
        if self.kept is not None:
            self.revealed = Revealed(self.kept)
            for demand, node, answer in self._answers:
                self.revealed.reveal(demand.root, demand.tree_size, node, answer, demand.bytes_total)

    def _play(self, move: Move) -> None:
        rules: dict[str, Callable[..., None]] = {
            "selectSegment": self._select_segment,
            "expandSteps": self._expand_steps,
            "selectStep": self._select_step,
            "expandTrace": self._expand_trace,
            "selectCall": self._select_call,
            "demand": self._demand,
            "revealNode": self._reveal_node,
            "revealLeaf": self._reveal_leaf,
            "judge": self._judge,
            "judgeInput": self._judge_input,
            "judgeOutput": self._judge_output,
            "selectElement": self._select_element,
            "split": self._split,
            "selectBlock": self._select_block,
            "judgeBlock": self._judge_block,
        }
        arguments = move.arguments
        if move.function not in ("expandSteps", "expandTrace"):
            assert arguments[0] == self.view.game
            arguments = arguments[1:]
            if not move.function.startswith("reveal"):
                assert arguments[0] == self.view.head
                arguments = arguments[1:]
        rules[move.function](*arguments)
        if move.function == "demand":
            demand = self.view.demand
            assert demand is not None
            (node,) = demand.nodes
            assert move.answers == (0 if node.size > 1 else self._leaf_bytes(demand, node),)
        self._become(head=sha256(self.view.head + move.function.encode()).digest())

    def _become(self, **changes: Any) -> None:
        self.view = replace(self.view, **changes)

    # -------------------------------------------------------------- on the way down

    def _select_segment(self, segment: int, before: Leaf, after: Leaf) -> None:
        for index, leaf in ((segment - 1, before), (segment, after)):
            verify_inclusion(self.view.segment_root, self.view.segment_size, index, leaf.value, leaf.path)
        self._ends = before.value, after.value
        self._become(phase=Phase.STEP, segment=segment)

    def _expand_steps(self, task: int, segment: int, root: bytes, first: Leaf, last: Leaf) -> None:
        assert (task, segment) == (self.view.task, self.view.segment)
        assert (first.value, last.value) == self._ends
        for index, leaf in ((0, first), (self.steps, last)):
            verify_inclusion(root, self.steps + 1, index, leaf.value, leaf.path)
        self._become(steps_root=root)

    def _select_step(self, step: int, before: Leaf, after: Leaf) -> None:
        assert self.view.steps_root is not None
        for index, leaf in ((step - 1, before), (step, after)):
            verify_inclusion(self.view.steps_root, self.steps + 1, index, leaf.value, leaf.path)
        self._become(
            phase=Phase.FRAME,
            step=step,
            before=before.value,
            after=after.value,
            frame_keys=(trace_key(self.view.task, self.view.segment, step, before.value, after.value),),
            frame_roots=(None,),
        )

    def _expand_trace(self, key: bytes, root: bytes) -> None:
        assert key == self.view.frame_keys[-1]
        self._become(frame_roots=(*self.view.frame_roots[:-1], root))

    def _select_call(self, call: InstructionOpening) -> None:
        assert self._judge_of(-1).instruction(call).op is Op.CALL
        self._become(
            path=(*self.view.path, call.n),
            frame_keys=(*self.view.frame_keys, callee_key(self.view.frame_keys[-1], call.data)),
            frame_roots=(*self.view.frame_roots, None),
        )

    def _demand(
        self,
        kind: int,
        opening: tuple[InstructionOpening, Leaf],
        before: bytes,
        after: bytes,
        nodes: Sequence[Node],
    ) -> None:
        tree = TreeKind(kind)
        root, size, total = self._tree(tree, *opening, before, after)
        for lo, count, hash_, path in nodes:
            verify_path(root, size, lo, count, hash_, path)
        named = tuple(DemandedNode(node.lo, node.size, node.hash) for node in nodes)
        self.demanded.append(tree)
        self._become(demand=Demand(tree, root, size, total, named, tuple(range(len(named)))))

    def _tree(
        self, tree: TreeKind, opened: InstructionOpening, value: Leaf, before: bytes, after: bytes
    ) -> tuple[bytes, int, int]:
        view = self.view
        if tree is TreeKind.SEGMENT:
            assert view.phase is Phase.SEGMENT
            return view.segment_root, view.segment_size, 0
        if tree is TreeKind.STEP:
            assert view.phase is Phase.STEP
            assert view.steps_root is not None
            return view.steps_root, self.steps + 1, 0
        assert view.phase is Phase.FRAME
        if tree is TreeKind.STATE:
            assert not view.path
            assert (before, after) == (view.before, view.after)
            return after, self.tensors, 0
        if tree is TreeKind.TRACE:
            assert ProgramOpening(*opened.program) == self._frame(-1).opening
            return self._trace(-1), self._frame(-1).trace_leaves, 0
        instruction = self._judge_of(-1).instruction(opened)
        self._judge_of(-1).require_leaf(instruction.first, value)
        return value.value, chunk_count(instruction.result.nbytes), instruction.result.nbytes

    def _reveal_node(
        self, index: int, total: int, nodes: Sequence[DemandedNode], hashes: Sequence[bytes]
    ) -> None:
        demand, node = self._demanded(index, total, nodes)
        assert node.size > 1
        assert fold_descendants(node.size, 4, hashes) == node.hash
        self._answered(demand, node, tuple(hashes))

    def _reveal_leaf(self, index: int, total: int, nodes: Sequence[DemandedNode], data: bytes) -> None:
        demand, node = self._demanded(index, total, nodes)
        assert node.size == 1
        assert len(data) == self._leaf_bytes(demand, node)
        assert leaf_hash(data) == node.hash
        self._answered(demand, node, data)

    def _demanded(self, index: int, total: int, nodes: Sequence[DemandedNode]) -> tuple[Demand, DemandedNode]:
        demand = self.view.demand
        assert demand is not None
        assert (total, tuple(nodes)) == (demand.bytes_total, demand.nodes)
        assert index in demand.unanswered
        return demand, demand.nodes[index]

    def _answered(self, demand: Demand, node: DemandedNode, answer: Sequence[bytes] | bytes) -> None:
        self._answers.append((demand, node, answer))
        self.revealed.reveal(demand.root, demand.tree_size, node, answer, demand.bytes_total)
        left = tuple(k for k in demand.unanswered if demand.nodes[k] != node)
        self._become(demand=demand._replace(unanswered=left) if left else None)

    @staticmethod
    def _leaf_bytes(demand: Demand, node: DemandedNode) -> int:
        return chunk_length(demand.bytes_total, node.lo) if demand.bytes_total else 32

    # -------------------------------------------------------------- edges

    def _judge_input(
        self, opened: InstructionOpening, value: Leaf, source: Leaf, before: bytes, after: bytes, call: bytes
    ) -> None:
        instruction = self._judge_of(-1).instruction(opened)
        assert instruction.op is Op.INPUT
        self._judge_of(-1).require_leaf(instruction.first, value)
        k = decode_index(instruction.attributes)
        if call:
            leaf = self._call(before, after, call).operands[k].leaf
            self._judge_of(-2).require_leaf(leaf, source)
        else:
            assert (before, after) == (self.view.before, self.view.after)
            if k < self.tensors:
                verify_inclusion(before, self.tensors, k, source.value, source.path)
            else:
                root, size = constants_tree(self.constants).root, len(self.constants)
                verify_inclusion(root, size, k - self.tensors, source.value, source.path)
        assert value.value != source.value
        self._convict(opened.n, None)

    def _judge_output(
        self, opened: InstructionOpening, value: Leaf, target: Leaf, before: bytes, after: bytes, call: bytes
    ) -> None:
        instruction = self._judge_of(-1).instruction(opened)
        assert instruction.op is Op.OUTPUT
        self._judge_of(-1).require_leaf(instruction.operands[0].leaf, value)
        k = decode_index(instruction.attributes)
        if call:
            self._judge_of(-2).require_leaf(self._call(before, after, call).first + k, target)
        else:
            assert (before, after) == (self.view.before, self.view.after)
            verify_inclusion(after, self.tensors, k, target.value, target.path)
        assert value.value != target.value
        self._convict(opened.n, None)

    def _call(self, caller: bytes, zeros: bytes, data: bytes) -> Instruction:
        assert callee_key(caller, data) == self.view.frame_keys[-1]
        assert zeros == bytes(32)
        return Instruction.decode(data)

    # -------------------------------------------------------------- elements

    def _judge(
        self,
        opened: InstructionOpening,
        element: int,
        operands: Sequence[Leaf],
        chunks: Sequence[ChunkOpening],
        value: Leaf,
        claimed: ChunkOpening,
    ) -> None:
        computed = self._judge_of(-1).element(opened, element, operands, chunks, value, claimed)
        assert computed[0] != computed[1]
        self._convict(opened.n, element)

    def _select_element(
        self, opened: InstructionOpening, element: int, value: Leaf, claimed: ChunkOpening
    ) -> None:
        judge = self._judge_of(-1)
        bits = judge.claimed(opened, element, value, claimed)
        instruction = judge.instruction(opened)
        blocks = reduction(instruction).blocks(instruction)
        assert blocks > 1
        self._become(instruction=opened.n)
        self._ask(Selection(keccak(opened.data), element, 0, blocks, bits, True, bytes(32)))

    def _split(self, data: bytes, selection: Selection, words: list[int]) -> None:
        assert self.view.phase is Phase.SPLIT
        self._selected(data, selection)
        assert len(words) == len(parts(selection.lo, selection.hi))
        primitive = reduction(Instruction.decode(data))
        folded = reduce(primitive.fold, words)
        assert (primitive.finish(folded) if selection.top else folded) == selection.word
        stated = selection._replace(words=keccak(encode(["uint64[]"], [words])))
        self._become(phase=Phase.BLOCK, selection=stated, words=tuple(words))

    def _select_block(self, data: bytes, selection: Selection, words: list[int], part: int) -> None:
        self._selected(data, selection)
        assert tuple(words) == self.view.words
        lo, hi = parts(selection.lo, selection.hi)[part]
        assert hi - lo > 1
        self._ask(Selection(selection.instruction, selection.element, lo, hi, words[part], False, bytes(32)))

    def _judge_block(
        self,
        opened: InstructionOpening,
        selection: Selection,
        words: list[int],
        part: int,
        operands: Sequence[Leaf],
        chunks: Sequence[ChunkOpening],
    ) -> None:
        self._selected(opened.data, selection)
        assert tuple(words) == self.view.words
        lo, hi = parts(selection.lo, selection.hi)[part]
        assert hi - lo == 1
        computed = self._judge_of(-1).block(opened, selection.element, lo, operands, chunks)
        assert computed != words[part]
        self._convict(opened.n, selection.element)

    def _ask(self, selection: Selection) -> None:
        self._become(phase=Phase.SPLIT, selection=selection, words=())

    def _selected(self, data: bytes, selection: Selection) -> None:
        assert selection == self.view.selection
        assert keccak(data) == selection.instruction

    def _convict(self, n: int, element: int | None) -> None:
        self.judged = n, element
        self._become(phase=Phase.CLOSED, verdict=Verdict.SOLVER_FALSE)

    # -------------------------------------------------------------- openings

    def _frame(self, which: int) -> Program:
        """The program of the frame that the game has reached (-1), or of that frame's caller (-2)."""
        programs = [self.program]
        for n in self.view.path:
            programs.append(programs[-1].callee(n))
        return programs[which]

    def _trace(self, which: int) -> bytes:
        root = self.view.frame_roots[which]
        assert root is not None
        return root

    def _judge_of(self, which: int) -> Judge:
        return Judge(self._frame(which).opening, self._trace(which))


def cover_up(view: GameView, run: Run) -> Move | None:
    """The honest defence, except in splits. There, one word is changed, so that all words add up to the false
    sum. The first word is changed in the first split of an element, and the last word in a split of a part.
    """
    move = defender.next_move(view, run)
    if move is None or move.function != "split":
        return move
    game, head, data, selection, words = move.arguments
    at = 0 if selection.top else -1
    false = list(words)
    false[at] = (words[at] + selection.word - sum(words)) % 2**64
    return replace(move, arguments=(game, head, data, selection, false))
