"""One game as `protocol.dispute` sees it, built only from the task's program and the contract's state and
events.

A restart loses neither the view nor the reveals, because both are read from the chain again. Data that the
solver has served are not on the chain; `protocol.dispute.revealed` keeps them. The events of a game are read
once and followed from then on. State and events are taken at the same block, and a re-organisation makes the
reader start over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from eth_abi.abi import encode
from eth_utils.crypto import keccak

from protocol.chain.errors import UnstableChain
from protocol.chain.events import Follower
from protocol.chain.game import Game
from protocol.chain.receipts import Event
from protocol.chain.views import GameState
from protocol.dispute.keys import frame_keys, steps_key
from protocol.dispute.revealed import Revealed
from protocol.dispute.view import Demand, DemandedNode, GameView, Phase, Selection, TreeKind
from protocol.program.instruction import Instruction
from protocol.program.opcodes import Op
from protocol.program.primitives import PRIMITIVES, Reduction
from protocol.program.program import Program

_TRIES = 5
_SELECTION: Final = ("bytes32", "uint64", "uint32", "uint32", "uint64", "bool", "bytes32")
"""ABI types of a `Selection`."""


@dataclass(frozen=True, slots=True)
class Reveal:
    """An accepted answer about a node of the tree with this root and size. The answer is the node's
    descendants or, if the node is a leaf, the leaf's bytes. If the tree is that of a value, `bytes_total` is
    the number of the value's bytes; otherwise it is 0.
    """

    root: bytes
    size: int
    bytes_total: int
    node: DemandedNode
    answer: tuple[bytes, ...] | bytes


class GameReader:
    """Reads game `number` repeatedly. `program` is the step program of its task; `first` is a block before
    the game opened.
    """

    def __init__(self, game: Game, number: int, program: Program, first: int) -> None:
        self.game = game
        self.number = number
        self._program = program
        self._first = first
        self._passed_on: set[Reveal] = set()
        self._start()

    def view(self) -> GameView:
        """The game at the newest block. Its state is read at that block's hash, and its events up to that
        block. If the chain's node has left out events, all of them are read again. Raises UnstableChain if
        blocks change faster than they can be read, or if events are still missing.
        """
        for _ in range(_TRIES):
            block = self.game.connection.block()
            batch = self._follower.poll(block.number)
            if batch.rewound is not None:
                self._start()
                continue
            self._events += batch.events
            if batch.stop != block.hash:
                continue
            state = self.game.game(self.number, block.hash)
            if self._has_all_events(state):
                return self._build(state, block.hash)
            self._start()
        raise UnstableChain(
            f"game {self.number}",
            expected=f"a block that stays for one reading, and all events up to it, within {_TRIES} tries",
            got="another hash, or too few events, each time",
            remedy="follow the game with a node nearer to the chain's end",
        )

    def reveal_to(self, revealed: Revealed) -> None:
        """Add new reveals to `revealed`. A re-organisation does not make them wrong."""
        for reveal in reveals(self._events):
            if reveal not in self._passed_on:
                self._passed_on.add(reveal)
                revealed.reveal(reveal.root, reveal.size, reveal.node, reveal.answer, reveal.bytes_total)

    def _start(self) -> None:
        self._events: list[Event] = []
        # All of the contract's events about one game carry its number as their first indexed argument.
        self._follower = Follower(
            self.game.connection,
            {self.game.address: self.game.contract},
            self._first,
            topics=[None, self.number.to_bytes(32, "big")],
        )

    def _has_all_events(self, state: GameState) -> bool:
        """Whether the events that were read lead to this state. A node may answer a request for a block's
        logs before it has indexed them, or keep them back. Always true for a closed game, because its events
        decide nothing any more.
        """
        if state.phase is Phase.CLOSED:
            return True
        asked, answers = self._of("Demanded"), [*self._of("NodeRevealed"), *self._of("LeafRevealed")]
        demanded = sum(len(event.arguments["nodes"]) for event in asked)
        calls = self._of("CallSelected")
        if (len(asked), len(calls)) != (state.demands, state.depth):
            return False
        if len(answers) != demanded - state.demand_open.bit_count():
            return False
        if state.phase in (Phase.FRAME, Phase.SPLIT, Phase.BLOCK) and not self._of("StepSelected"):
            return False
        if state.phase not in (Phase.SPLIT, Phase.BLOCK):
            return True
        elements = self._of("ElementSelected")
        if not elements:
            return False
        path = tuple(int(event.arguments["n"]) for event in calls)
        selection = self._selection(state, path, int(elements[-1].arguments["n"]))
        return keccak(encode(_SELECTION, selection)) == state.selection

    def _build(self, state: GameState, block: str) -> GameView:
        path = tuple(int(event.arguments["n"]) for event in self._of("CallSelected"))
        steps = self._of("StepSelected")
        chosen = steps[-1].arguments if steps else None
        keys = tuple(frame_keys(chosen["claim"], self._program, path)) if chosen else ()
        elements = self._of("ElementSelected")
        instruction = int(elements[-1].arguments["n"]) if elements else 0
        splitting = state.phase in (Phase.SPLIT, Phase.BLOCK)
        return GameView(
            game=self.number,
            task=state.task,
            challenger=state.challenger,
            phase=state.phase,
            head=state.head,
            segment_root=state.segment_root,
            segment_size=state.segment_size,
            segment=state.segment,
            step=state.step,
            before=chosen["before"] if chosen else bytes(32),
            after=chosen["afterwards"] if chosen else bytes(32),
            path=path,
            steps_root=self._claimed(steps_key(state.task, state.segment), state, block)
            if state.segment
            else None,
            frame_keys=keys,
            frame_roots=tuple(self._claimed(key, state, block) for key in keys),
            demand=open_demand(self._events, state.demand_open),
            instruction=instruction,
            selection=self._selection(state, path, instruction) if splitting else None,
            words=self._words() if splitting else (),
            verdict=state.verdict,
        )

    def _of(self, name: str) -> list[Event]:
        return [event for event in self._events if event.name == name]

    def _claimed(self, key: bytes, state: GameState, block: str) -> bytes | None:
        return self.game.claim(key, block).posted(state)

    def _words(self) -> tuple[int, ...]:
        """The words that the solver stated for the current selection; empty until it has stated them."""
        last = [e for e in self._events if e.name in ("ElementSelected", "BlockSelected", "Split")][-1]
        return tuple(last.arguments["words"]) if last.name == "Split" else ()

    def _selection(self, state: GameState, path: tuple[int, ...], number: int) -> Selection:
        """The preimage of the contract's selection hash. The selected element is read from the event
        ElementSelected, and the number of blocks comes from the program.
        """
        program = self._program
        for n in path:
            program = program.callee(n)
        instruction = program.instructions[number]
        element = self._of("ElementSelected")[-1]
        later = [e for e in self._of("BlockSelected") if _place(e) > _place(element)]
        if later:
            lo, hi, word, top = (*(int(later[-1].arguments[k]) for k in ("lo", "hi", "word")), False)
        else:
            lo, hi, word, top = 0, _blocks(instruction), int(element.arguments["claimed"]), True
        words = self._words()
        stated = keccak(encode(["uint64[]"], [words])) if state.phase is Phase.BLOCK else bytes(32)
        index = int(element.arguments["element"])
        return Selection(keccak(instruction.encode()), index, lo, hi, word, top, stated)


def open_demand(events: list[Event], unanswered: int) -> Demand | None:
    """The newest demand, together with the numbers of its nodes that are still due. None if no node is due.
    Bit k of `unanswered` is set if node k is due.
    """
    if not unanswered:
        return None
    asked = [event for event in events if event.name == "Demanded"][-1].arguments
    nodes = tuple(DemandedNode(*node) for node in asked["nodes"])
    due = tuple(k for k in range(len(nodes)) if unanswered >> k & 1)
    return Demand(TreeKind(asked["tree"]), asked["root"], asked["treeSize"], asked["bytesTotal"], nodes, due)


def reveals(events: list[Event]) -> list[Reveal]:
    """The accepted answers among a game's events, in order, each with the node and tree of its demand."""
    answers: dict[str, Callable[[Event], tuple[bytes, ...] | bytes]] = {
        "NodeRevealed": lambda event: tuple(event.arguments["descendants"]),
        "LeafRevealed": lambda event: bytes(event.arguments["data"]),
    }
    found: list[Reveal] = []
    asked: Event | None = None
    for event in events:
        if event.name == "Demanded":
            asked = event
        elif event.name in answers and asked is not None:
            node = DemandedNode(*asked.arguments["nodes"][event.arguments["index"]])
            root, size, total = (asked.arguments[key] for key in ("root", "treeSize", "bytesTotal"))
            found.append(Reveal(root, size, total, node, answers[event.name](event)))
    return found


def _blocks(instruction: Instruction) -> int:
    primitive = PRIMITIVES[Op(instruction.op)]
    assert isinstance(primitive, Reduction), "only reductions are split"
    return primitive.blocks(instruction)


def _place(event: Event) -> tuple[int, int]:
    return event.log.block, event.log.index
