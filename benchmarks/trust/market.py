"""A chain with the recommended deployment for a rollup, and real nodes: a submitter, a solver and verifiers.

The solver and verifiers are the nodes of `solver run` and `verifier watch`, in threads of this process. They
train and replay a program with two small tensors, so the work takes no time. `Gate` holds the work back while
the chain's clock is moved over the hours and days that real work takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Condition, Thread
from time import monotonic, sleep
from typing import Final

from assay.beacon import development_beacon
from protocol.beacon.relays import Relays
from protocol.chain.accounts import open_account
from protocol.chain.client import Client, connect
from protocol.chain.deploy import deploy
from protocol.chain.devnet import Devnet
from protocol.chain.parameters import RECOMMENDED, TOKEN
from protocol.chain.transactions import Sender, Sending
from protocol.chain.views import Offer
from protocol.execution.replay import HonestExecutor, Work, honest_interpreter
from protocol.node.home import Home
from protocol.node.stopping import Stop
from protocol.program.step import State
from sim.replay.stage import own_home
from sim.trust_table import ROLLUP
from solver.node import SolverNode
from solver.settings import SolverSettings
from solver.strategy import Strategy as SolverStrategy
from verifier.node import VerifierNode
from verifier.settings import VerifierSettings
from verifier.strategy import Strategy as VerifierStrategy

SUBMITTER: Final = "dev:0"
SOLVER: Final = "dev:1"
VERIFIERS: Final = tuple(f"dev:{index}" for index in range(10, 20))
IDLE: Final = tuple(f"dev:{index}" for index in range(20, 45))
"""Accounts registered with one unit, too little for a seat of these tasks. The market requires as many
registrations as a task has seats and jurors, so these accounts are needed. They could also be drawn into a
jury, but no jury is called.
"""
PARAMETERS: Final = replace(RECOMMENDED, draw_delay=ROLLUP.draw_delay, draw_fee=ROLLUP.draw_fee)
PATIENCE: Final = 300.0
"""Limit in seconds on every wait. The parties share two cores."""
_SENDING: Final = Sending(timeout=120.0, poll=0.05)
_ANY: Final = Offer(
    speed=2**64 - 1, state_bytes=2**64 - 1, lock=2**128 - 1, fee=0, seat_fee=0, period=2**32 - 1
)
_TOKENS: Final = 200_000 * TOKEN


class Gate:
    """Holds work back: a step whose number is greater than `limit` has to wait. If `limit` is None, no step waits."""

    def __init__(self) -> None:
        self._limit: int | None = None
        self._changed = Condition()

    def let(self, limit: int | None) -> None:
        """Allow steps up to number `limit`; None allows all steps."""
        with self._changed:
            self._limit = limit
            self._changed.notify_all()

    def executor(self, work: Work) -> HonestExecutor:
        """An honest executor that waits before each step until this gate allows the step."""
        return _Held(work, self)

    def wait(self, step: int) -> None:
        """Wait until a step is allowed."""
        with self._changed:
            self._changed.wait_for(lambda: self._limit is None or step <= self._limit)


class _Held(HonestExecutor):
    def __init__(self, work: Work, gate: Gate) -> None:
        super().__init__(work.program, work.fixed, honest_interpreter(work))
        self._gate = gate

    def step(self, state: State, number: int, /) -> State:
        """The next state, computed once the gate allows the step."""
        self._gate.wait(number)
        return super().step(state, number)


class Market:
    """The parties' clients, the gates of their work, and the chain's clock."""

    def __init__(self, devnet: Devnet, relay: str, folder: Path, stack: ExitStack) -> None:
        self.devnet = devnet
        self.home = Home(folder / "home")
        self.bundles = folder / "bundles"
        with Sender(devnet.connection, open_account("dev:9", devnet.chain_id), _SENDING) as sender:
            self.deployment = deploy(sender, PARAMETERS)
        self.submitter, self.solver, *self.verifiers = (
            stack.enter_context(connect(devnet.url, self.deployment, name, sending=_SENDING))
            for name in (SUBMITTER, SOLVER, *VERIFIERS)
        )
        self.relays = Relays(self.deployment.beacon, (relay,), self.submitter.beacon.is_signed_round)
        for client in self.clients:
            client.token.mint(client.address, _TOKENS)
        for name in IDLE:
            with connect(devnet.url, self.deployment, name, sending=_SENDING) as idle:
                idle.token.mint(idle.address, PARAMETERS.stake_unit)
                idle.fund(PARAMETERS.stake_unit)
                idle.audit.register(0, _ANY)
        self.training, self.replaying = Gate(), Gate()
        self.first_block = devnet.connection.block().number + 1
        """The first block after the set-up. Earlier blocks have the transactions that mint the tokens."""

    @property
    def clients(self) -> Sequence[Client]:
        """The clients of the submitter, the solver and the verifiers."""
        return (self.submitter, self.solver, *self.verifiers)

    def names(self) -> dict[str, str]:
        """The kind of each party ("submitter", "solver" or "verifier"), by address."""
        kinds = ("submitter", "solver", *("verifier" for _ in self.verifiers))
        return {client.address: kind for client, kind in zip(self.clients, kinds, strict=True)}

    def skip_to(self, time: int) -> None:
        """Move the chain's clock to a time, unless that time has passed."""
        self.devnet.skip(max(0, time - self.submitter.now()))

    def nodes(self, relay: str, stop: Stop) -> list[SolverNode | VerifierNode]:
        """The solver's node, and one node with all verifier accounts."""
        shared = {"port": 0, "poll": 0.2, "bundles": (self.bundles.parent.as_uri(),), "relays": (relay,)}
        solver = SolverSettings.model_validate({**shared, "stake": 40_000, "min_eligible": len(VERIFIERS)})
        verifier = VerifierSettings.model_validate({**shared, "stake": 1_000})
        return [
            SolverNode(
                self.solver, solver, self.home, SolverStrategy(executor=self.training.executor), stop=stop
            ),
            VerifierNode(
                self.verifiers[0],
                verifier,
                self.home,
                VerifierStrategy(executor=self.replaying.executor),
                further=self.verifiers[1:],
                stop=stop,
            ),
        ]


def until(what: Callable[[], bool], name: str) -> None:
    """Wait until `what` returns true. Raises TimeoutError after `PATIENCE` seconds."""
    deadline = monotonic() + PATIENCE
    while not what():
        if monotonic() > deadline:
            raise TimeoutError(
                f"expected {name} within {PATIENCE:g} s, got nothing; run it again on a quieter machine"
            )
        sleep(0.1)


@contextmanager
def market() -> Iterator[Market]:
    """A new chain with running parties, once all verifiers are registered and the solver has announced its
    service.
    """
    with ExitStack() as stack:
        stack.enter_context(own_home())
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="assay-trust-")))
        devnet = stack.enter_context(Devnet(block_time=None))
        beacon = stack.enter_context(development_beacon(devnet.connection, 0))
        made = Market(devnet, beacon.url, folder, stack)
        devnet.connection.request("evm_setAutomine", False)
        devnet.connection.request("evm_setIntervalMining", 1)
        stop = Stop()
        threads = [Thread(target=node.run, args=(False,)) for node in made.nodes(beacon.url, stop)]
        for thread in threads:
            thread.start()
        try:
            until(
                lambda: made.submitter.audit.registered() == len(VERIFIERS) + len(IDLE),
                "registered verifiers",
            )
            until(lambda: bool(made.submitter.market.endpoint_of(made.solver.address)), "an announced solver")
            yield made
        finally:
            made.training.let(None)
            made.replaying.let(None)
            stop.ask()
            for thread in threads:
                thread.join(60)
