"""False games against an honest solver's node, by an account with bonds for many games at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import monotonic, sleep

from protocol.chain.client import Client
from protocol.chain.errors import Reverted
from protocol.chain.events import Follower
from protocol.commitments import Tree, segment_tree, step_tree
from protocol.dispute.keys import NO_SEAT, SEGMENT_UNKNOWN, priority_commitment, steps_key
from protocol.dispute.moves import Move
from protocol.dispute.openings import NO_INSTRUCTION, NO_LEAF, Node, open_leaf
from protocol.dispute.view import TreeKind
from protocol.execution.replay import HonestExecutor, Replay
from protocol.program.execute import Interpreter
from tests.chain.arena import Subject, replay
from tests.unit.solver import tiny

NODES = 16
"""The maximum number of nodes that one demand may name (contracts/src/dispute/Demands.sol)."""


def honest_run(segments: int, segment_steps: int) -> Replay:
    """The run to which an honest solver commits on the tiny task with `segments` segments of `segment_steps`
    steps.
    """
    program = tiny.step_program()
    executor = HonestExecutor(program, tiny.fixed(), Interpreter())
    return replay(Subject(program, tiny.fixed(), tiny.initial(), segments, segment_steps), executor)


class FalseGames:
    """Opens games on one honestly computed task, and makes a challenger's demands in them."""

    def __init__(self, client: Client, task: int, run: Replay) -> None:
        self.client = client
        self.task = task
        self.run = run
        self._salts = 0

    def at_once(self, calls: Sequence[Callable[[], None]]) -> None:
        """Make all `calls` in parallel, each in a separate thread, and wait for them. Each call makes one move."""
        with ThreadPoolExecutor(len(calls)) as pool:
            for done in [pool.submit(call) for call in calls]:
                done.result()

    def open_blind(self) -> int:
        """Open a game that names no segment; returns its number."""
        return self.client.game.challenge_blind(self.task, self._commit(SEGMENT_UNKNOWN))[0]

    def open(self, segment: int) -> int:
        """Open a game on a segment, so that the solver owes its step tree; returns the game's number."""
        salt = self._commit(segment)
        roots = list(self.run.segment_roots() or [])
        tree = segment_tree(roots)
        before, after = (open_leaf(tree, k, roots[k]) for k in (segment - 1, segment))
        return self.client.game.challenge(self.task, segment, salt, before, after)[0]

    def demand_checkpoints(self, game: int) -> None:
        """Ask for the first 16 leaves of the segment tree."""
        roots = list(self.run.segment_roots() or [])
        self._demand(game, TreeKind.SEGMENT, segment_tree(roots))

    def demand_steps(self, game: int, segment: int) -> None:
        """Ask for the first 16 leaves of the segment's step tree."""
        self._demand(game, TreeKind.STEP, step_tree(list(self.run.step_roots(segment))))

    def is_expanded(self, segment: int) -> bool:
        """Whether the solver has posted the segment's step tree."""
        return self.client.game.claim(steps_key(self.task, segment)).posted_at > 0

    def expanded_at(self, segment: int) -> int:
        """The chain time, in seconds, at which the solver posted the segment's step tree; 0 if it has not."""
        return self.client.game.claim(steps_key(self.task, segment)).posted_at

    def solver_spent(self, game: int) -> int:
        """Seconds that the solver has used of its clock in a game."""
        return self.client.game.game(game).solver_spent

    def is_answered(self, game: int) -> bool:
        """Whether everything that was demanded in a game is revealed."""
        return self.client.game.game(game).demand_open == 0

    def until_convicted_or(self, games: list[int], done: str, segments: list[int] | None = None) -> bool:
        """Wait until every game has passed the check `done`; meanwhile, call every timeout that is due.

        `done` is the name of a method, `is_answered` or `is_expanded`. If `segments` is given, with one
        segment for each game, the method gets the segment instead of the game. Returns True once all games
        have passed, and False as soon as a timeout convicts the solver. Fails after 240 seconds.
        """
        due = list(zip(games, segments or games, strict=True))
        give_up = monotonic() + 240
        while due:
            game, segment = due[0]
            if getattr(self, done)(segment if segments else game):
                due.pop(0)
                continue
            for late, _ in due:
                if self.client.now() > self.client.game.game(late).deadline:
                    try:
                        self.client.game.time_out(late)
                    except Reverted:  # answered in between
                        continue
                    return False
            assert monotonic() < give_up
            sleep(0.1)
        return True

    def blocks_of_reveals(self, game: int) -> list[int]:
        """The block number of each reveal in a game."""
        client = self.client
        topics = [None, game.to_bytes(32, "big")]
        contracts = {client.game.address: client.game.contract}
        events = Follower(client.connection, contracts, client.deployment.block, topics=topics).poll().events
        return [event.log.block for event in events if event.name in ("NodeRevealed", "LeafRevealed")]

    def _demand(self, game: int, kind: TreeKind, tree: Tree) -> None:
        head = self.client.game.game(game).head
        nodes = [Node(k, 1, tree.node(k, 1), tree.subtree_path(k, 1)) for k in range(NODES)]
        arguments = (game, head, int(kind), (NO_INSTRUCTION, NO_LEAF), bytes(32), bytes(32), nodes)
        self.client.game.send_move(Move("demand", arguments, answers=(32,) * NODES), head)

    def _commit(self, segment: int) -> bytes:
        self._salts += 1
        salt = self._salts.to_bytes(32, "big")
        client = self.client
        chain = client.deployment.chain_id
        calls = client.commitments
        commitment = priority_commitment(chain, calls.address, self.task, segment, client.address, salt)
        calls.commit(self.task, NO_SEAT, commitment)
        return salt
