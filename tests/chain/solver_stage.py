"""A chain with an account that submits and verifies, for tests that run the real solver.

The chain's clock runs with the machine's, and a busy machine can stall for seconds. So periods and clocks are
long. If a period only has to pass, the stage advances the chain's clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Thread
from time import monotonic, sleep

from assay.beacon import development_beacon
from protocol.chain.accounts import open_account
from protocol.chain.client import Client, connect
from protocol.chain.deploy import deploy
from protocol.chain.devnet import Devnet
from protocol.chain.parameters import DEVNET, TOKEN, Parameters
from protocol.chain.transactions import Sender, Sending
from protocol.chain.views import NOBODY, TaskStatus, TaskView
from protocol.commitments.tensors import Tensor
from protocol.errors import ExitCode
from protocol.node.home import Home
from protocol.node.stopping import Stop
from protocol.numerics.types import to_bytes
from protocol.tasks.arithmetics import ARITHMETIC
from protocol.tasks.bundles import Bundle, committed_terms, write_bundle
from protocol.tasks.task import Terms
from solver.node import SolverNode
from solver.settings import SolverSettings
from solver.strategy import HONEST, Strategy
from tests.chain.rounds import ANYTHING, show
from tests.unit.solver import tiny

SOLVER = "dev:1"
QUICK = Sending(poll=0.02)
PARAMETERS = replace(DEVNET, stall_period=4_000, unbonding_period=4_100)
"""Parameters with long periods, so that no task stalls on a busy machine."""


class Stage:
    """The contracts on a chain, and a submitter that is also a verifier: it posts tasks and attests the seats
    for which it is drawn. `relay` is the URL of the beacon's relay.
    """

    def __init__(self, devnet: Devnet, folder: Path, relay: str, parameters: Parameters = PARAMETERS) -> None:
        self.devnet = devnet
        self.relay = relay
        self.url = devnet.url
        """The node's address for clients; a test may put a proxy in front of the node."""
        self.home = Home(folder / "assay-home")
        self.bundles = folder / "submitted"
        with Sender(devnet.connection, open_account("dev:9", devnet.connection.chain_id), QUICK) as sender:
            self.deployment = deploy(sender, parameters)
        self.submitter = self.client("dev:0")
        self.submitter.fund(100_000 * TOKEN)
        self.submitter.audit.register(0, ANYTHING)

    def client(self, account: str) -> Client:
        """A client for an account, connected through `url`. An account with fewer than 200,000 tokens gets
        200,000 more.
        """
        client = connect(self.url, self.deployment, account, sending=QUICK)
        if client.token.balance_of(client.address) < 200_000 * TOKEN:
            client.token.mint(client.address, 200_000 * TOKEN)
        return client

    def post(
        self, segments: int = tiny.SEGMENTS, manifest: bytes | None = None, **changes: int | str | bytes
    ) -> int:
        """Post the tiny task; returns its id. `changes` override terms; `manifest` replaces the bundle's
        manifest file.
        """
        bundle = tiny_bundle(self.deployment.arithmetic)
        hash_ = write_bundle(bundle, self.bundles)
        if manifest is not None:
            (self.bundles / "manifest.json").write_bytes(manifest)
        fields = {
            **committed_terms(bundle),
            "bundle_hash": hash_,
            "bundle": self.bundles.as_uri(),
            "segments": segments,
            "segment_steps": tiny.STEPS,
            "budget": 100 * TOKEN,
            "stake": 500 * TOKEN,
            "restitution": 10 * TOKEN,
            "reward": 50 * TOKEN,
            "audit_fee": TOKEN,
            "game_cost": 3 * TOKEN,
            "delay_penalty": 5 * TOKEN,
            "bidding_period": 60,
            "training_period": 600,
            "challenge_period": 600,
            "attest_period": 400,
            "extension": 20,
            # Long enough for 111 moves of three seconds each; an attestation has longer.
            "clock": 350,
            "replay_allowance": 0,
            "verifiers": 1,
            "segments_per_verifier": 1,
            # With one step per segment, no chunk may be left out.
            "thinning": min(2, int(changes.get("segment_steps", tiny.STEPS))),
            "move_time": min(200, int(changes.get("attest_period", 400))),
            "look_chance": 0,
            "jurors": 0,
            "seat_lock": 2 * TOKEN,
            "bond": 20 * TOKEN,
            "retrain_reward": 60 * TOKEN,
        }
        show(self.submitter)
        return self.submitter.market.post(Terms(**(fields | changes)))[0]

    def sold(self, segments: int = tiny.SEGMENTS, **changes: int | str) -> int:
        """Post the tiny task, wait for a bid and end the bidding; returns its id."""
        task = self.post(segments, None, **changes)
        self.end_bidding(task)
        return task

    def settings(self, **changes: object) -> SolverSettings:
        """Settings for a solver that may read bundles from the submitter's folder."""
        allowed = (self.bundles.parent.as_uri(),)
        return SolverSettings.model_validate(
            {
                "port": 0,
                "poll": 0.05,
                "bundles": allowed,
                "relays": (self.relay,),
                "low_disk_gib": 0,
                **changes,
            }
        )

    def attest(self, task: int) -> None:
        """Attest the submitter's seats of a drawn task with a made-up digest, which only a look would check."""
        for seat in self.submitter.audit.seats(task):
            if seat.account == self.submitter.address:
                self.submitter.audit.attest(task, seat.number, bytes(31) + b"\x01", bytes(32))

    def end_bidding(self, task: int) -> None:
        """Wait for a bid, then let the bidding period pass."""
        self.skip_to(self.until(task, lambda view: view.bidder != NOBODY).bids_until)

    def end_challenges(self, task: int) -> None:
        """Advance the chain's clock past the challenge period of a submitted task."""
        self.skip_to(self.submitter.market.task(task).challenge_until)

    def skip_to(self, time: int) -> None:
        """Advance the chain's clock past `time`."""
        self.devnet.skip(max(0, time - self.submitter.now()) + 1)

    def until(self, task: int, what: Callable[[TaskView], bool], seconds: float = 60) -> TaskView:
        """Wait until `what` holds for a task; returns the task's view."""
        deadline = monotonic() + seconds
        while True:
            view = self.submitter.market.task(task)
            if what(view):
                return view
            assert monotonic() < deadline, f"task {task} is still {view.status.name}, size {view.size}"
            sleep(0.05)

    def until_drawn(self, task: int) -> None:
        """Wait for the submission, advance the clock to the draw's round, and wait until a party executes the
        draw.
        """
        audit = self.submitter.audit
        self.until(task, submitted)
        self.skip_to(self.deployment.beacon.time_of(audit.audit(task).round) - 1)
        self.until(task, lambda _view: not audit.audit(task).pending)


def tiny_bundle(arithmetic: int = ARITHMETIC) -> Bundle:
    """The tiny task's bundle, for a version of the arithmetic."""
    program = tiny.step_program()
    state = tuple(
        Tensor(name, int(type_.dtype), type_.shape, to_bytes(x, type_.dtype))
        for (name, x), type_ in zip(tiny.initial().items(), program.state_types)
    )
    (data,) = tiny.fixed()
    dataset = (Tensor("data", 0, (300,), to_bytes(data, program.fixed_types[0].dtype)),)
    return Bundle("tiny", program, state, dataset, (), arithmetic=arithmetic)


class Solver:
    """A solver node in a thread. `ended` is its exit code, or the error that ended it; None while it runs."""

    account = SOLVER

    def __init__(
        self, stage: Stage, strategy: Strategy = HONEST, once: bool = True, **settings: object
    ) -> None:
        self.stop = Stop()
        self.client = stage.client(self.account)
        self.node = SolverNode(
            self.client, stage.settings(**settings), self.home(stage), strategy, stop=self.stop
        )
        self.ended: ExitCode | BaseException | None = None
        self._once = once
        self._thread = Thread(target=self._run)
        self._thread.start()
        while not self.node.context.catalog.ready and self._thread.is_alive():
            sleep(0.02)

    def _run(self) -> None:
        try:
            self.ended = self.node.run(self._once)
        except Exception as error:
            self.ended = error

    def home(self, stage: Stage) -> Home:
        """The node's home folder."""
        return stage.home

    def join(self, seconds: float = 60) -> ExitCode | BaseException | None:
        """Wait until the node has ended; returns `ended`. Fails if the node still runs after `seconds`."""
        self._thread.join(seconds)
        assert not self._thread.is_alive(), "the solver still runs"
        return self.ended

    def close(self) -> None:
        """Stop the node and release its account."""
        self.stop.ask()
        self._thread.join(30)
        self.client.close()


class SecondSolver(Solver):
    """Another solver on the same stage, with its own account and home."""

    account = "dev:2"

    def home(self, stage: Stage) -> Home:
        """A home folder next to the first solver's."""
        return Home(stage.home.root.with_name("second-home"))


@contextmanager
def stage(folder: Path, *, mixed: bool = True, parameters: Parameters = PARAMETERS) -> Iterator[Stage]:
    """Yields a stage on a fresh chain with everything deployed, and with a beacon. The chain makes a block
    every second and, if `mixed`, also one for each transaction.
    """
    with (
        Devnet(block_time=1 if mixed else None, mixed=mixed) as devnet,
        development_beacon(devnet.connection, 0) as beacon,
    ):
        made = Stage(devnet, folder, beacon.url, parameters)
        made.client(SOLVER).close()
        if not mixed:
            devnet.make_blocks_every(1)
        try:
            yield made
        finally:
            made.submitter.close()


@contextmanager
def mined_at_once(scene: Stage) -> Iterator[None]:
    """Mine a block for each transaction inside the context, and afterwards a block every second."""
    scene.devnet.connection.request("evm_setAutomine", True)
    try:
        yield
    finally:
        scene.devnet.connection.request("evm_setIntervalMining", 1)


def submitted(view: TaskView) -> bool:
    """Whether the solver has submitted its result."""
    return view.status is TaskStatus.SUBMITTED


def over(view: TaskView) -> bool:
    """Whether the task is over."""
    return view.status.is_over
