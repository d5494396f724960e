"""Games on the real contracts between a solver and a challenger in this process, without servers or sleeps.

The solver's run may be perturbed. The chain sees what the real parties would send: the moves come from
`protocol.dispute`, the trees from `protocol.execution.replay`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from torch import Tensor

from protocol.chain.accounts import open_account
from protocol.chain.client import Client, connect
from protocol.chain.deploy import deploy
from protocol.chain.devnet import Devnet
from protocol.chain.game_view import GameReader
from protocol.chain.parameters import DEVNET, TOKEN
from protocol.chain.transactions import Sender, Sending
from protocol.chain.views import TaskStatus
from protocol.commitments import ProgressTree
from protocol.dispute import challenger, defender
from protocol.dispute.in_process import Serving, Silent
from protocol.dispute.keys import NO_SEAT, SEGMENT_UNKNOWN, priority_commitment
from protocol.dispute.moves import Move
from protocol.dispute.openings import Leaf
from protocol.dispute.provider import Run
from protocol.dispute.revealed import Revealed
from protocol.dispute.view import GameView, Phase, Verdict
from protocol.execution.replay import Executor, Replay
from protocol.program.cost import cost
from protocol.program.step import State, StepProgram
from protocol.tasks.task import Terms
from tests.chain.rounds import ANYTHING, draw_first, show

PARAMETERS = replace(DEVNET, stall_period=600_000, unbonding_period=600_002)
"""Parameters with long periods: tests move the clock far ahead, and no task may stall because of that."""
SALT = bytes(32)
MAX_TURNS = 400


@dataclass
class Ended:
    """How a game ended: the contract's verdict, the moves in order, the gas of each transaction from the
    commitment on, and the last view of the game. `judged` has the arguments of the judgment's event; it is
    empty if there was no judgment.
    """

    verdict: Verdict
    moves: list[str]
    gas: list[int]
    view: GameView
    judged: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Subject:
    """What is trained: a step program, its dataset and constants, the initial state, and the run's length."""

    program: StepProgram
    fixed: tuple[Tensor, ...]
    initial: State
    segments: int
    segment_steps: int


class Arena:
    """A chain with contracts, and one account each for submitter, solver and challenger. The challenger is
    also the verifier.
    """

    def __init__(self, devnet: Devnet) -> None:
        self.devnet = devnet
        quick = Sending(poll=0.01)
        deployer = open_account("dev:9", devnet.chain_id)
        with Sender(devnet.connection, deployer, quick) as sender:
            deployment = deploy(sender, PARAMETERS)
        self.submitter, self.solver, self.challenger = (
            connect(devnet.url, deployment, f"dev:{k}", sending=quick) for k in range(3)
        )
        for client in (self.submitter, self.solver, self.challenger):
            client.token.mint(client.address, 1_000_000 * TOKEN)
            client.fund(900_000 * TOKEN)
        self.challenger.audit.register(0, ANYTHING)  # solvers take no task on a chain without verifiers

    def close(self) -> None:
        """Close the three clients, which releases the accounts."""
        for client in (self.submitter, self.solver, self.challenger):
            client.close()

    def ready(self) -> None:
        """Clean up after earlier tasks: execute pending draws, burn the part of each slashed stake that no
        seat has claimed, and release the seats of tasks that are over. The challenger, as the only verifier,
        does all this. Then show the beacon contract a new round if its last one is too old, because the
        chain's clock may have moved by days.
        """
        market, audit = self.challenger.market, self.challenger.audit
        while audit.first_draw() is not None:
            draw_first(self.challenger, self.devnet)
        for task in range(1, market.tasks() + 1):
            if market.task(task).status is TaskStatus.SLASHED:
                self._burn_rest(task)
            if market.task(task).status.is_over:
                for seat in audit.seats(task):
                    if not (seat.is_empty or seat.released):
                        audit.release(task, seat.number)
        show(self.challenger)

    def _burn_rest(self, task: int) -> None:
        client = self.challenger
        if client.vault.lock_of(client.market.task(task).stake).remaining:
            self.devnet.skip(max(0, client.commitments.claims_until(task) - client.now()) + 1)
            client.market.burn_rest(task)

    def submitted(self, subject: Subject, runs: Sequence[Run]) -> list[int]:
        """Post a task for each run and submit the run to it; returns the tasks' ids, in order."""
        self.ready()
        tasks = [self.submitter.market.post(terms(subject, number))[0] for number, _ in enumerate(runs)]
        for task in tasks:
            self.solver.market.bid(task, 10 * TOKEN)
        self.devnet.skip(30)
        for task, run in zip(tasks, runs, strict=True):
            self.solver.market.assign(task)
            roots = run.segment_roots()
            assert roots is not None
            tree = ProgressTree(list(roots)).at(len(roots))
            last = len(roots) - 1
            self.solver.market.submit(
                task, tree.root, tree.inclusion_path(0), [], roots[last], tree.inclusion_path(last)
            )
        return tasks

    def play(
        self,
        task: int,
        subject: Subject,
        solver: Run,
        honest: Run,
        provider: Silent | Serving,
        segment: int | None,
        defend: Callable[[GameView, Run], Move | None] = defender.next_move,
    ) -> Ended:
        """Challenge and play until the game is judged or closed. With `segment` None the challenge is blind.
        When `defend` returns None, the solver's clock runs out.
        """
        game, gas = self.opened(task, solver, segment, self.challenger)
        moves = ["challenge" if segment else "challengeBlind"]
        client = self.challenger
        reader = GameReader(client.game, game, subject.program.program, self.devnet.connection.block().number)
        revealed = Revealed()
        for _ in range(MAX_TURNS):
            view = reader.view()
            if view.phase is Phase.CLOSED:
                break
            reader.reveal_to(revealed)
            if view.solver_to_move:
                answer = defend(view, solver)
                if answer is None:
                    self.devnet.skip(1_000)
                    client.game.time_out(game)
                    continue
                receipt = self.solver.game.send_move(answer, view.head)
            else:
                answer = challenger.next_move(view, honest, revealed, provider)
                assert answer is not None
                receipt = client.game.send_move(answer, view.head)
            moves.append(answer.function)
            gas.append(receipt.gas_used)
            for event in client.game.events(receipt):
                if event.name in ("Judged", "EdgeJudged"):
                    return Ended(reader.view().verdict, moves, gas, view, dict(event.arguments))
        return Ended(reader.view().verdict, moves, gas, reader.view())

    def opened(self, task: int, solver: Run, segment: int | None, client: Client) -> tuple[int, list[int]]:
        """Open a game as `client`; returns its number, and the gas of the commitment and of the challenge."""
        named = SEGMENT_UNKNOWN if segment is None else segment
        commitment = priority_commitment(
            client.deployment.chain_id, client.commitments.address, task, named, client.address, SALT
        )
        first = client.commitments.commit(task, NO_SEAT, commitment)
        self.devnet.mine()
        if segment is None:
            game, second = client.game.challenge_blind(task, SALT)
        else:
            roots = solver.segment_roots()
            assert roots is not None
            tree = ProgressTree(list(roots)).at(len(roots))
            before = Leaf(roots[segment - 1], tree.inclusion_path(segment - 1))
            after = Leaf(roots[segment], tree.inclusion_path(segment))
            game, second = client.game.challenge(task, segment, SALT, before, after)
        return game, [first.gas_used, second.gas_used]


@contextmanager
def fresh_arena() -> Iterator[Arena]:
    """An arena on a fresh anvil that makes a block for every transaction."""
    with Devnet(block_time=None) as devnet:
        made = Arena(devnet)
        try:
            yield made
        finally:
            made.close()


def replay(subject: Subject, executor: Executor) -> Replay:
    """Run a subject with an executor; returns the run, which has its checkpoints in memory."""
    states: list[State] = [subject.initial]
    state = subject.initial
    for number in range(1, subject.segments * subject.segment_steps + 1):
        state = executor.step(state, number)
        if number % subject.segment_steps == 0:
            states.append(state)
    roots = [subject.program.state_root(state) for state in states]
    return Replay(
        subject.program, subject.fixed, executor, subject.segment_steps, lambda i: states[i], lambda: roots
    )


def terms(subject: Subject, number: int) -> Terms:
    """Terms of a task on the arena's chain. `number` determines only the bundle hash, so that tasks of one
    subject differ.
    """
    program = subject.program
    return Terms(
        program_id=program.program.id,
        constants_root=program.constants_root(subject.fixed),
        initial_state=program.state_root(subject.initial),
        bundle_hash=(number + 1).to_bytes(32, "big"),
        constants=len(subject.fixed),
        state_tensors=len(program.state),
        segments=subject.segments,
        segment_steps=subject.segment_steps,
        step_operations=cost(program.program).operations,
        state_bytes=program.state_bytes,
        budget=20 * TOKEN,
        stake=100 * TOKEN,
        restitution=20 * TOKEN,
        reward=10 * TOKEN,
        audit_fee=TOKEN,
        game_cost=3 * TOKEN,
        delay_penalty=TOKEN,
        bidding_period=20,
        training_period=80_000,
        challenge_period=80_000,
        attest_period=70_000,
        extension=10,
        clock=500,
        replay_allowance=0,
        verifiers=1,
        segments_per_verifier=1,
        arithmetic=1,
        thinning=1,
        move_time=10_000,
        look_chance=0,
        jurors=0,
        seat_lock=2 * TOKEN,
        bond=20 * TOKEN,
        retrain_reward=12 * TOKEN,
        bundle="http://127.0.0.1/none",
    )
